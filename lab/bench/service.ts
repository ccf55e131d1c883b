import { setTimeout as sleep } from "node:timers/promises";
import { createDiscord } from "../discord-sim/simulator.ts";
import { shown } from "../discord-sim/world.ts";
import { steady } from "../pacing/scenarios.ts";
import { openSlack } from "../slack-sim/control.ts";
import { lookFor } from "../support/look-for.ts";
import { makeDataDir } from "../support/service.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";
import { startPacedUpstream, wordsOf } from "./support/paced-upstream.ts";
import { formatNumber } from "./support/statistics.ts";
import { formatTable } from "./support/table.ts";
import { startWorker } from "./support/worker.ts";

const TOKENS = 1_500;
const TOKENS_PER_SECOND = 30;
const COUNT = 5;
const WARM_UP = "warm-up";
const LIMIT_MS = 110_000;
/** Maximum time for the service to connect. An answer can take this long in addition to its length. */
const WAIT_MS = 30_000;
/** After this pause, all work after an answer is done, for example storing its record. */
const TAIL_MS = 2_500;
const HEAD = ["five answers of 1,500 tokens at 30 a second", "CPU, s", "µs per token", "× minimal bot", "calls"];
const ANSWER = steady(TOKENS, TOKENS_PER_SECOND);
const WARM_ANSWER = steady(60, 60);
const LAST_WORD = wordsOf(ANSWER).at(-1)?.trim() ?? "";
const LAST_WARM_WORD = wordsOf(WARM_ANSWER).at(-1)?.trim() ?? "";

interface Stage {
  env: Record<string, string>;
  isConnected(): boolean;
  /** Asks in a new channel or thread. The returned function returns the bot's text there. */
  ask(question: string): () => string;
  countCalls(): number;
  close(): Promise<void>;
}

interface Measured {
  name: string;
  seconds: number;
  calls: number;
}

const PROGRAMS = [
  { name: "Palaver", url: import.meta.resolve("./support/service-ours.ts") },
  { name: "minimal bot", url: import.meta.resolve("./support/service-peer.ts") },
] as const;
const PLATFORMS = [
  { name: "Discord", open: openDiscordStage, core: 0 },
  { name: "Slack", open: openSlackStage, core: 1 },
] as const;

await runBench(async (resources) => {
  const upstream = await startPacedUpstream((question) => (question === WARM_UP ? WARM_ANSWER : ANSWER));
  resources.defer(upstream.close);
  const rows = await Promise.all(
    PLATFORMS.map(async ({ name, open, core }) => {
      const [ours, peer] = await Promise.all(
        PROGRAMS.map(async (program): Promise<Measured> => {
          const stage = await open();
          resources.defer(stage.close);
          const measured = await measure(resources, { stage, upstream: upstream.url, url: program.url, core });
          return { name: `${name}: ${program.name}`, ...measured };
        }),
      );
      return [ours, peer].map((one) => toCells(one as Measured, peer as Measured));
    }),
  );
  return [
    `service: ${describeMachine()}; processor time of the bot's process, user and system, from the questions to ${TAIL_MS / 1_000} s after`,
    `the last word of the last answer; both bots of a platform in the same ${Math.round(TOKENS / TOKENS_PER_SECOND)} s, each on a separate platform, after an answer of 60 tokens.`,
    "",
    formatTable(HEAD, rows.flat()),
  ].join("\n");
}, LIMIT_MS);

interface Setup {
  stage: Stage;
  upstream: string;
  url: string;
  core: number;
}

async function measure(resources: AsyncDisposableStack, { stage, upstream, url, core }: Setup) {
  const { path: dataDir, remove } = await makeDataDir();
  resources.defer(remove);
  const gateway = { GATEWAY_BASE_URL: upstream, GATEWAY_API_KEY: "none", CHAT_MODEL: "paced" };
  const own = { DATA_DIR: dataDir, PORT: "0", LOCAL_CHAT: "off", DISCORD_THREADS: "off", LOG_LEVEL: "info" };
  const worker = startWorker(url, [JSON.stringify({ ...gateway, ...own, ...stage.env })], core, "ignore");
  resources.defer(worker.end);
  const readCpu = () => {
    const reported = worker.receive<number>();
    worker.send("cpu");
    return reported;
  };
  await until(stage.isConnected, "the bot connects");
  const warm = stage.ask(WARM_UP);
  await until(() => warm().includes(LAST_WARM_WORD), "the first answer is complete");
  await sleep(TAIL_MS);
  const [before, callsBefore] = [await readCpu(), stage.countCalls()];
  const answers = Array.from({ length: COUNT }, (_, index) => stage.ask(`question ${index}`));
  await until(
    () => answers.every((text) => text().includes(LAST_WORD)),
    "the answers are complete",
    TOKENS / TOKENS_PER_SECOND,
  );
  await sleep(TAIL_MS);
  return { seconds: (await readCpu()) - before, calls: stage.countCalls() - callsBefore };
}

async function until(holds: () => boolean, what: string, seconds = 0): Promise<void> {
  if ((await lookFor(holds, WAIT_MS + seconds * 1_000)) === undefined)
    throw new Error(`Waited too long until ${what}.`);
}

async function openDiscordStage(): Promise<Stage> {
  const discord = await createDiscord();
  const guild = discord.addGuild();
  const ada = discord.addUser("Ada", guild);
  return {
    env: { DISCORD_TOKEN: discord.token, DISCORD_API_URL: discord.apiUrl },
    isConnected: () => discord.gateway.sessions.some(({ isAttached }) => isAttached),
    ask(question) {
      const channel = discord.addChannel(guild, question.replaceAll(" ", "-"));
      discord.people.say(channel, ada, question, { mentionBot: true });
      const own = () => discord.messages(channel).filter(({ author }) => author === discord.bot);
      return () =>
        own()
          .map((message) => shown(message).content)
          .join(" ");
    },
    countCalls: () => discord.requests.length,
    close: discord.close,
  };
}

async function openSlackStage(): Promise<Stage> {
  const slack = await openSlack();
  const ada = slack.user({ name: "Ada" });
  return {
    env: { SLACK_BOT_TOKEN: slack.botToken, SLACK_APP_TOKEN: slack.appToken, SLACK_API_URL: slack.apiUrl },
    isConnected: () => slack.connections() > 0,
    ask(question) {
      const channel = slack.channel({ name: question.replaceAll(" ", "-"), members: [ada] });
      const { ts } = ada.mention(channel, question);
      return () => slack.texts(channel, ts).join(" ");
    },
    countCalls: () => slack.requests.length,
    close: slack.close,
  };
}

function toCells({ name, seconds, calls }: Measured, peer: Measured): string[] {
  return [
    name,
    formatNumber(seconds, 2),
    formatNumber((seconds * 1e6) / (COUNT * TOKENS), 0),
    formatNumber(seconds / peer.seconds, 2),
    String(calls),
  ];
}
