import { describe, expect, type TestContext, test } from "vitest";
import { createDiscord, type Discord } from "../../lab/discord-sim/simulator.ts";
import { openSlack } from "../../lab/slack-sim/control.ts";
import { type LaunchedService, launchService, makeDataDir } from "../../lab/support/service.ts";
import { type Door, type Shut, startDoor } from "../support/door.ts";
import { eventually } from "../support/eventually.ts";

/** The whole time for the shutdown. A process that needs longer kills itself with another exit code. */
const GRACE_S = "8";
const COUNTING = `At 20 tokens per second, say: ${Array.from({ length: 400 }, (_, index) => index).join(" ")}`;
const EDIT = "PATCH /channels/:channel/messages/:message";
const POST = "POST /channels/:channel/messages";
const WAYS: readonly Shut[] = ["never answers", "refuses"];

/** Each test passes its own `onTestFinished`, because the tests run in parallel. */
type OnFinished = TestContext["onTestFinished"];

async function launch(env: Record<string, string>, onFinished: OnFinished): Promise<LaunchedService> {
  const { path, remove } = await makeDataDir();
  onFinished(remove);
  const service = launchService(path, { SHUTDOWN_GRACE_SECONDS: GRACE_S, ...env });
  onFinished(async () => void (await service.end("SIGKILL")));
  return service;
}

interface Scene {
  door: Door;
  service: LaunchedService;
  /** Resolves when a part of a long answer is visible. */
  ask(): Promise<void>;
  /** Makes Discord answer every edit with a wait of a minute. Resolves when the bot has received such an answer. */
  limitEdits(): Promise<void>;
  /** Asks for an image. Resolves during the image's upload, which never ends. */
  askForPicture(): Promise<void>;
  /** Aborts all connections that deliver events. */
  drop(): void;
}

type StartScene = (onFinished: OnFinished, shut?: Shut) => Promise<Scene>;

function onSlack(transport: "sockets" | "requests"): StartScene {
  return async (onFinished, shut) => {
    const slack = await openSlack();
    onFinished(async () => {
      await slack.close();
      slack.assertClean();
    });
    const ada = slack.user({ name: "Ada" });
    const general = slack.channel({ name: "general", members: [ada] });
    const door = await startDoor(new URL(slack.apiUrl).origin, shut);
    onFinished(door.remove);
    const { botToken, appToken, signingSecret } = slack;
    const proof: Record<string, string> =
      transport === "sockets" ? { SLACK_APP_TOKEN: appToken } : { SLACK_SIGNING_SECRET: signingSecret };
    const env = { SLACK_BOT_TOKEN: botToken, SLACK_API_URL: `${door.origin}/api/`, ...proof };
    const service = await launch(env, onFinished);
    const isCalled = (method: string) => slack.requests.some((request) => request.method === method);
    return {
      door,
      service,
      async limitEdits() {
        slack.failNext("chat.update", { retryAfterS: 60 }, 100);
        slack.failNext("chat.appendStream", { retryAfterS: 60 }, 100);
        const before = slack.requests.length;
        const isTold = () => slack.requests.slice(before).some(({ method }) => /append|update/.test(method));
        await slack.until(isTold, "a refused edit", 20_000);
      },
      async askForPicture() {
        slack.slow("files.getUploadURLExternal", 600_000);
        ada.mention(general, "Draw a red boat.");
        await slack.until(() => isCalled("files.getUploadURLExternal"), "the upload", 20_000);
      },
      async ask() {
        const asked = ada.mention(general, COUNTING);
        await slack.until(() => slack.texts(general, asked)[0]?.includes("1"), "the first words", 20_000);
      },
      drop: () => slack.dropConnections(),
    };
  };
}

const onDiscord: StartScene = async (onFinished, shut) => {
  let door: Door | undefined;
  const via = async (origin: string) => (door = await startDoor(origin, shut)).origin;
  // A connection that is aborted while it identifies starts again, against Discord's rules.
  const discord = await createDiscord({ via });
  onFinished(() => discord.close());
  if (door === undefined) throw new Error("There is no door.");
  onFinished(door.remove);
  const guild = discord.addGuild();
  const channel = discord.addChannel(guild, "general");
  const ada = discord.addUser("Ada", guild);
  const service = await launch({ DISCORD_TOKEN: discord.token, DISCORD_API_URL: discord.apiUrl }, onFinished);
  return {
    door,
    service,
    async limitEdits() {
      discord.faults.failNext(EDIT, { status: 429, retryAfterMs: 60_000, scope: "user", times: Infinity });
      const before = discord.requests.length;
      await discord.until(() => discord.requests.slice(before).some(({ route }) => route === EDIT));
    },
    async askForPicture() {
      discord.faults.failNext(POST, { status: "silence", times: Infinity });
      discord.people.say(channel, ada, "Draw a red boat.", { mentionBot: true });
      await discord.until(() => discord.requests.some(({ route }) => route === POST));
    },
    async ask() {
      discord.people.say(channel, ada, COUNTING, { mentionBot: true });
      await discord.until(() => hasAnswer(discord));
    },
    drop: () => discord.gateway.drop(),
  };
};

function hasAnswer(discord: Discord): boolean {
  return discord.places().some((place) => discord.messages(place).some(({ states }) => states.length >= 2));
}

const PLATFORMS: ReadonlyArray<[string, StartScene]> = [
  ["Slack over Socket Mode", onSlack("sockets")],
  ["Slack over HTTP", onSlack("requests")],
  ["Discord", onDiscord],
];
/** With events over HTTP, the service keeps no connection open, so only its start differs. */
const CONNECTED = PLATFORMS.filter(([name]) => name !== "Slack over HTTP");
const ALL = PLATFORMS.flatMap(([name, start]) => WAYS.map((way) => ({ name, start, way })));
const HELD = CONNECTED.map(([name, start], index) => ({ name, start, way: WAYS[index] as Shut }));

describe.concurrent("SIGTERM while other services are unreachable", () => {
  test.for(ALL)(
    "SIGTERM ends the service while it connects to $name, which $way",
    async ({ start, way }, { onTestFinished }) => {
      const { service, door } = await start(onTestFinished, way);
      await door.nextVisitor();
      // A client in another test's server can reach the same port before the service has started.
      await eventually(() => service.lines.join("\n")).toContain("Storage: ");
      expect(await service.end("SIGTERM"), service.lines.join("\n")).toBe(0);
      expect(service.lines.join("\n")).not.toMatch(/"level":"(fatal|error)"/);
    },
  );

  test.for(HELD)(
    "SIGTERM ends the service in the middle of an answer on $name, which $way",
    async ({ start, way }, { onTestFinished }) => {
      const { service, door, ask, drop } = await start(onTestFinished);
      await service.ready;
      await ask();
      door.shut(way);
      // While the door is shut, the bot cannot acknowledge events.
      drop();
      expect(await service.end("SIGTERM"), service.lines.join("\n")).toBe(0);
    },
  );

  test.for(CONNECTED)(
    "SIGTERM ends the service while an answer waits for a rate limit of %s",
    async ([, start], { onTestFinished }) => {
      const { service, ask, limitEdits } = await start(onTestFinished);
      await service.ready;
      await ask();
      await limitEdits();
      expect(await service.end("SIGTERM"), service.lines.join("\n")).toBe(0);
    },
  );

  test.for(CONNECTED)(
    "SIGTERM ends the service while it uploads an image to %s",
    async ([, start], { onTestFinished }) => {
      const { service, askForPicture } = await start(onTestFinished);
      await service.ready;
      await askForPicture();
      expect(await service.end("SIGTERM"), service.lines.join("\n")).toBe(0);
    },
  );
});
