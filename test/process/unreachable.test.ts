import { describe, expect, type TestContext, test } from "vitest";
import { createDiscord, type Discord } from "../simulators/discord/simulator.ts";
import { openSlack } from "../simulators/slack/control.ts";
import { type Door, type Shut, startDoor } from "../support/door.ts";
import { eventually } from "../support/eventually.ts";
import { type LaunchedService, launchService, makeDataDir } from "../support/service.ts";

/** All that the end may take: a process that takes longer cuts itself, and says so with its exit code. */
const GRACE_S = "8";
const COUNTING = `At 20 tokens per second, say: ${Array.from({ length: 400 }, (_, index) => index).join(" ")}`;
const EDIT = "PATCH /channels/:channel/messages/:message";
const POST = "POST /channels/:channel/messages";
const WAYS: readonly Shut[] = ["never answers", "refuses"];

/** Of each test by itself: they run side by side. */
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
  /** Resolves when some of a long answer is there. */
  ask(): Promise<void>;
  /** From here on whoever changes a message is to wait for a minute. Resolves when somebody was told to. */
  limitEdits(): Promise<void>;
  /** Asks for a picture, and resolves when it is being uploaded, which has no end. */
  askForPicture(): Promise<void>;
  /** Cuts every connection that is delivered over. */
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
  // What is cut off in the middle of an identify begins anew, against the rules.
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
/** Over HTTP nothing is held open, so that only its start differs. */
const CONNECTED = PLATFORMS.filter(([name]) => name !== "Slack over HTTP");
const ALL = PLATFORMS.flatMap(([name, start]) => WAYS.map((way) => ({ name, start, way })));
const HELD = CONNECTED.flatMap(([name, start]) => WAYS.map((way) => ({ name, start, way })));

describe.concurrent("SIGTERM ends the service in order and in time", () => {
  test.for(ALL)("while it connects to $name, which $way", async ({ start, way }, { onTestFinished }) => {
    const { service, door } = await start(onTestFinished, way);
    await door.nextVisitor();
    // A client of another test's server, gone meanwhile, may come to the same port before the service has begun.
    await eventually(() => service.lines.join("\n")).toContain("Storage: ");
    expect(await service.end("SIGTERM"), service.lines.join("\n")).toBe(0);
    expect(service.lines.join("\n")).not.toMatch(/"level":"(fatal|error)"/);
  });

  test.for(HELD)("while $name, which was connected, $way", async ({ start, way }, { onTestFinished }) => {
    const { service, door, drop } = await start(onTestFinished);
    await service.ready;
    door.shut(way);
    drop();
    expect(await service.end("SIGTERM"), service.lines.join("\n")).toBe(0);
  });

  test.for(HELD)("in the middle of an answer on $name, which $way", async ({ start, way }, { onTestFinished }) => {
    const { service, door, ask, drop } = await start(onTestFinished);
    await service.ready;
    await ask();
    door.shut(way);
    // What is delivered behind the door could not be acknowledged.
    drop();
    expect(await service.end("SIGTERM"), service.lines.join("\n")).toBe(0);
  });

  test.for(CONNECTED)("while an answer waits for a rate limit of %s", async ([, start], { onTestFinished }) => {
    const { service, ask, limitEdits } = await start(onTestFinished);
    await service.ready;
    await ask();
    await limitEdits();
    expect(await service.end("SIGTERM"), service.lines.join("\n")).toBe(0);
  });

  test.for(CONNECTED)("while a picture is being uploaded to %s", async ([, start], { onTestFinished }) => {
    const { service, askForPicture } = await start(onTestFinished);
    await service.ready;
    await askForPicture();
    expect(await service.end("SIGTERM"), service.lines.join("\n")).toBe(0);
  });
});
