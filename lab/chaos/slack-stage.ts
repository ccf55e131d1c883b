import { openSlack } from "../slack-sim/control.ts";
import type { Delivery } from "../slack-sim/delivery.ts";
import { textOf } from "../slack-sim/shown-text.ts";
import type { Message } from "../slack-sim/world.ts";
import { installIntoSlack, toInstallableEnv } from "../support/slack-install.ts";
import type { Shown } from "./place.ts";
import { DISTURBING, openSlackPlace, slackBreaks, TROUBLES, toShown } from "./slack-place.ts";
import type { Call, Stage, StagePlan } from "./stage.ts";

/** Places in one workspace share its rate limits, so each workspace has only this many. */
const PLACES_PER_WORKSPACE = 3;
/** Pauses before Slack retries an event. The real Slack waits for minutes. */
const RETRY_MS = [0, 1_000, 4_000, 10_000];

export async function openSlackStage({ places, streams, faults, isAlone }: StagePlan): Promise<Stage> {
  const slack = await openSlack({ streaming: streams ? "on" : "unknown_method", limits: { retryMs: RETRY_MS } });
  const hasKills = faults.some(({ kind }) => kind === "kill");
  const count = Math.ceil(places.length / PLACES_PER_WORKSPACE);
  const workspaces = [
    slack.workspace,
    ...Array.from({ length: count - 1 }, (_, index) => slack.addWorkspace(`Team ${index + 2}`)),
  ];
  const questions = new Map<string, Message>();
  const rooms = places.map((place, index) => {
    const workspace = workspaces[index % count] ?? slack.workspace;
    const people = ["Ada", "Ben"].map((name) => slack.user({ name, workspace }));
    return { people, place: openSlackPlace(slack, { place, workspace, people, questions, hasKills }) };
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
    troubles: Object.keys(TROUBLES).filter((name) => isAlone || !DISTURBING.has(name)),
    disturbing: DISTURBING,
    draw(place, text) {
      const ada = rooms[place]?.people[0];
      let reply: string | undefined;
      const send = async () => {
        const outcome = await ada?.command("/imagine", text, ada.direct());
        if (outcome?.isAcknowledged) reply = textOf((outcome.response as { text?: unknown } | undefined)?.text);
      };
      void send();
      return () => reply;
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
    deliveryOf({ name }) {
      const deliveries = questions.get(name)?.deliveries.filter(isNewQuestion) ?? [];
      const known = (of: "toldAtMs" | "acknowledgedAtMs") =>
        deliveries.flatMap((delivery) => delivery[of] ?? []).toSorted((a, b) => a - b);
      return {
        deliveredAtMs: known("toldAtMs")[0],
        // Slack delivers a mention as two events, and two processes can handle them. If the question was deleted, one
        // process can skip its event while the other process still works.
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

function isNewQuestion({ payload }: Delivery): boolean {
  const event = (payload["event"] ?? {}) as { hidden?: boolean; edited?: unknown };
  return event.hidden !== true && event.edited === undefined;
}

function wordsOf(args: Record<string, unknown>): string {
  const text = args["markdown_text"] ?? args["text"] ?? args["chunks"] ?? "";
  return typeof text === "string" ? text : JSON.stringify(text);
}
