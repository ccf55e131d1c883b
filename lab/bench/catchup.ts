import { createDiscordAdapter } from "../../adapters/discord/adapter.ts";
import { createSlackAdapter } from "../../adapters/slack/adapter.ts";
import { readMissed } from "../../src/catchup/missed.ts";
import { summarize } from "../../src/catchup/summary.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { Actor } from "../../src/port/catalogue.ts";
import { estimateTokens } from "../../src/turn/context.ts";
import { createDiscord } from "../discord-sim/simulator.ts";
import { openSlack } from "../slack-sim/control.ts";
import type { Limits } from "../slack-sim/limits.ts";
import { LIMITS } from "../support/engine.ts";
import { silent } from "../support/log.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";
import { formatNumber } from "./support/statistics.ts";
import { formatTable } from "./support/table.ts";

const HEAD = ["", "read", "of", "seconds", "calls", "refused", "model requests", "tokens in", "tokens out"];
const LIMIT_MS = 240_000;
const DAY_MS = 86_400_000;
/** 120 characters. */
const WORDS =
  "The build is green again, and we plan to ship the release on Friday unless someone finds a reason not to. ".padEnd(
    120,
    "!",
  );
/** The usual length of a summary: as many lines as the prompt allows. */
const ANSWER = Array.from({ length: 12 }, (_, index) => `NEWS: The team ships the release on Friday [${index + 1}]`);

/** The messages of each channel, and the replies in each of its threads. */
interface Shape {
  name: string;
  channels: number;
  messages: number;
  threads: number;
  replies: number;
}

const THREAD: Shape = { name: "one thread of 300", channels: 1, messages: 0, threads: 1, replies: 299 };
const DAY: Shape = { name: "a day of 2,000 in ten channels", channels: 10, messages: 140, threads: 3, replies: 19 };

interface Row {
  cells: string[];
  gaps: readonly string[];
}

/** A platform with the messages of a shape, and the bot in it. */
interface Stage {
  adapter: Adapter;
  by: Actor;
  now: number;
  /** The calls to the platform so far, and those that it refused because of a limit. */
  count(): { calls: number; refused: number };
}

const never = new AbortController().signal;
const common = { commands: [], listModels: async () => [], log: silent, onFatal: () => {} };

await runBench(async (resources) => {
  const rows: Row[] = [];
  for (const shape of [THREAD, DAY]) {
    rows.push(await measure(`Slack, ${shape.name}`, shape, await stageSlack(shape, "internal", resources)));
    rows.push(
      await measure(`Slack, unlisted app, ${shape.name}`, shape, await stageSlack(shape, "commercial", resources)),
    );
    rows.push(await measure(`Discord, ${shape.name}`, shape, await stageDiscord(shape, resources)));
  }
  return [
    `catchup: ${describeMachine()}`,
    "The seconds are for reading, with the limits of the platforms and without a network; the model answers at once.",
    "Tokens are estimated. Messages have 120 characters.",
    "",
    formatTable(
      HEAD,
      rows.map(({ cells }) => cells),
    ),
    ...rows.flatMap(({ cells: [name], gaps }) => gaps.map((gap) => `${name}: ${gap}`)),
  ].join("\n");
}, LIMIT_MS);

async function measure(name: string, shape: Shape, { adapter, by, now, count }: Stage): Promise<Row> {
  const { channels, messages, threads, replies } = shape;
  const before = count();
  const startMs = performance.now();
  const wish = { which: channels === 1 ? "here" : "all", since: now - DAY_MS } as const;
  const deps = { adapterOf: () => adapter, log: silent };
  const missed = await readMissed(deps, wish, { by, until: now + DAY_MS, mayAsk: () => true }, never);
  const seconds = (performance.now() - startMs) / 1_000;
  if (typeof missed === "string") throw new Error(`${name}: ${missed}`);
  const after = count();
  const used = { requests: 0, tokensIn: 0, tokensOut: 0 };
  async function ask(system: string, text: string): Promise<string> {
    const answer = ANSWER.join("\n");
    used.requests += 1;
    used.tokensIn += estimateTokens(system) + estimateTokens(text);
    used.tokensOut += estimateTokens(answer);
    return answer;
  }
  await summarize(missed.messages, by.author.name, { ask, limits: LIMITS }, never);
  const figures = [
    missed.messages.length,
    channels * (messages + threads * (1 + replies)),
    seconds,
    after.calls - before.calls,
    after.refused - before.refused,
    used.requests,
    used.tokensIn,
    used.tokensOut,
  ];
  const cells = figures.map((figure) => formatNumber(figure, figure === seconds ? 1 : 0));
  return { cells: [name, ...cells], gaps: missed.gaps };
}

async function stageSlack(shape: Shape, history: Limits["history"], resources: AsyncDisposableStack): Promise<Stage> {
  const slack = await openSlack({ limits: { history } });
  const [ada, bob] = [slack.user({ name: "Ada" }), slack.user({ name: "Bob" })];
  const channels = Array.from({ length: shape.channels }, (_, index) =>
    slack.channel({ name: `channel-${index}`, members: [ada, bob] }),
  );
  for (const channel of channels) {
    for (let index = 0; index < shape.messages; index++) bob.say(channel, WORDS);
    for (let index = 0; index < shape.threads; index++) {
      const thread = bob.say(channel, WORDS);
      for (let reply = 0; reply < shape.replies; reply++) bob.say(channel, WORDS, { thread });
    }
  }
  const { appToken, botToken, apiUrl, now, workspace } = slack;
  const adapter = createSlackAdapter({
    ...common,
    transport: { mode: "socket", appToken },
    installed: { botToken },
    markKey: "key",
    apiUrl,
    findTurn: async () => undefined,
    now,
  });
  resources.defer(async () => {
    await adapter.close();
    await slack.close();
  });
  const authorId = `${workspace.id}/${ada.id}`;
  return {
    adapter,
    by: {
      author: { id: authorId, name: "Ada" },
      reply: {
        platform: "slack",
        channelId: channels[0]?.id ?? "",
        workspaceId: workspace.id,
        visibleTo: authorId,
        extra: { team: workspace.id, user: ada.id },
      },
    },
    now: now(),
    count: () => ({
      calls: slack.requests.length,
      refused: slack.requests.filter(({ status }) => status === 429).length,
    }),
  };
}

async function stageDiscord(shape: Shape, resources: AsyncDisposableStack): Promise<Stage> {
  const discord = await createDiscord();
  const guild = discord.addGuild();
  const [ada, bob] = [discord.addUser("Ada", guild), discord.addUser("Bob", guild)];
  const channels = Array.from({ length: shape.channels }, (_, index) => discord.addChannel(guild, `channel-${index}`));
  for (const channel of channels) {
    for (let index = 0; index < shape.messages; index++) discord.people.say(channel, bob, WORDS);
    for (let index = 0; index < shape.threads; index++) {
      const thread = discord.people.openThread(channel, bob, `thread ${index}`);
      for (let reply = 0; reply <= shape.replies; reply++) discord.people.say(thread, bob, WORDS);
    }
  }
  const { token, apiUrl, clock } = discord;
  const adapter = createDiscordAdapter({ ...common, token, apiUrl, threads: "off", now: clock.now });
  resources.defer(async () => {
    await adapter.close();
    await discord.close();
  });
  const place = { platform: "discord", channelId: channels[0]?.id ?? "", workspaceId: guild.id };
  return {
    adapter,
    by: { author: { id: ada.id, name: "Ada" }, reply: { ...place, visibleTo: ada.id } },
    now: clock.now(),
    count: () => ({
      calls: discord.requests.length,
      refused: discord.requests.filter(({ status }) => status === 429).length,
    }),
  };
}
