import { openSlack } from "../test/simulators/slack/control.ts";
import type { Delivery } from "../test/simulators/slack/delivery.ts";
import type { Message } from "../test/simulators/slack/world.ts";
import { openSlackPlace, slackBreaks, TROUBLES, toShown } from "../test/support/fault-loop/slack-world.ts";
import type { Shown } from "../test/support/fault-loop/world.ts";
import { installIntoSlack, toInstallableEnv } from "../test/support/slack-install.ts";
import type { PlaceKind } from "./plan.ts";
import type { Call, Stage } from "./stage.ts";

/** Few places share a workspace, whose rate limits are soon used up. */
const PLACES_PER_WORKSPACE = 3;
/** Minutes on the real one. */
const RETRY_MS = [0, 1_000, 4_000, 10_000];
/** An acknowledgement that says that the command has to be given again. */
const NOT_STORED = /I could not store that/;
/** Those that leave no answer to be judged are no part of this. */
const DISTURBING = new Set(["archived", "removed"]);

export async function openSlackStage(kinds: readonly PlaceKind[]): Promise<Stage> {
  const slack = await openSlack({ limits: { retryMs: RETRY_MS } });
  const count = Math.ceil(kinds.length / PLACES_PER_WORKSPACE);
  const workspaces = [
    slack.workspace,
    ...Array.from({ length: count - 1 }, (_, index) => slack.addWorkspace(`Team ${index + 2}`)),
  ];
  const asked = new Map<string, Message>();
  const rooms = kinds.map((place, index) => {
    const workspace = workspaces[index % count] ?? slack.workspace;
    const people = ["Ada", "Ben"].map((name) => slack.user({ name, workspace }));
    return { people, place: openSlackPlace(slack, { place, workspace, people, asked, hasKills: true }) };
  });

  function toCall(request: (typeof slack.requests)[number]): Call {
    const { method, args, workspaceId = "", atMs, endedAtMs, status, retryAfterMs, headers } = request;
    const [channel, ts] = [args["channel"], args["ts"]].map((value) => (typeof value === "string" ? value : undefined));
    const isPost = method === "chat.postMessage";
    return {
      atMs,
      endedAtMs,
      host: headers.host ?? "",
      method,
      budget: `${method} in ${workspaceId}${isPost ? ` ${channel}` : ""}`,
      messageId: ts === undefined ? undefined : `slack:${workspaceId}:${channel}:${ts}`,
      status,
      retryAfterMs,
      words: wordsOf(args),
    };
  }

  function shown(): Shown[] {
    const channels = workspaces.flatMap((workspace) => [...workspace.channels.values()]);
    return channels.flatMap((channel) => slack.answers(channel).map(toShown));
  }

  return {
    origin: new URL(slack.apiUrl).origin,
    env: (origin) => ({ ...toInstallableEnv(slack), SLACK_API_URL: `${origin}/api/` }),
    async install(serviceUrl) {
      for (const workspace of workspaces) await installIntoSlack(slack, serviceUrl, workspace);
    },
    places: rooms.map(({ place }) => place),
    troubles: Object.keys(TROUBLES).filter((name) => !DISTURBING.has(name)),
    draw(place, text) {
      const ada = rooms[place]?.people[0];
      let isHeard = false;
      const give = async () => {
        const given = await ada?.command("/imagine", text, ada.direct());
        // Whoever is not heard sees that at once, and nothing is owed to them.
        isHeard = given?.isAcknowledged === true && !NOT_STORED.test(JSON.stringify(given.response ?? ""));
      };
      void give();
      return () => isHeard;
    },
    shown,
    calls: () => slack.requests.filter(({ method }) => method.startsWith("chat.")).map(toCall),
    breaks() {
      const ids = shown().map(({ id }) => id);
      return slackBreaks(slack).map((one) => {
        const [ts] = /\b\d{10}\.\d{6}\b/.exec(one.sentence) ?? [];
        const messageId = ids.find((id) => ts !== undefined && id.endsWith(`:${ts}`));
        return messageId === undefined ? one : { ...one, messageId };
      });
    },
    told({ name }) {
      const deliveries = asked.get(name)?.deliveries.filter(tellsQuestion) ?? [];
      const known = (of: "toldAtMs" | "acknowledgedAtMs") =>
        deliveries.flatMap((delivery) => delivery[of] ?? []).toSorted((a, b) => a - b);
      return {
        toldAtMs: known("toldAtMs")[0],
        // A mention is told twice over. One process may leave out what it has heard deleted, which another one has not.
        acknowledgedAtMs: known("acknowledgedAtMs")[deliveries.length - 1],
        isGivenUp: deliveries.every(({ isSettled, acknowledgedAtMs }) => isSettled && acknowledgedAtMs === undefined),
      };
    },
    isSettled: () => slack.deliveries.every(({ isSettled }) => isSettled),
    secrets: [
      ...workspaces.map(({ botToken }) => botToken),
      ...["SLACK_CLIENT_SECRET", "SLACK_STATE_SECRET", "SLACK_APP_TOKEN", "ENCRYPTION_KEY"].map(
        (name) => toInstallableEnv(slack)[name] ?? "",
      ),
    ],
    close: slack.close,
  };
}

/** Not that it was edited or deleted. */
function tellsQuestion({ payload }: Delivery): boolean {
  const event = (payload["event"] ?? {}) as { hidden?: boolean; edited?: unknown };
  return event.hidden !== true && event.edited === undefined;
}

function wordsOf(args: Record<string, unknown>): string {
  const text = args["markdown_text"] ?? args["text"] ?? args["chunks"] ?? "";
  return typeof text === "string" ? text : JSON.stringify(text);
}
