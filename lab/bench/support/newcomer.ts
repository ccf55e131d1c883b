import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSlack } from "../../test/simulators/slack/control.ts";
import { lookFor } from "../../test/support/fault-loop/world.ts";
import { steady } from "../../test/support/pacing/scenarios.ts";
import { startPacedUpstream } from "./paced-upstream.ts";
import { formatNumber, summarize } from "./statistics.ts";
import { startWorker } from "./worker.ts";

/** So many questions of one person, in threads of one channel, each answered for longer than everything takes. */
const SLOW = 40;
const SLOW_ANSWER = steady(240, 2);
const SHORT_ANSWER = steady(4, 40);
const NEWCOMERS = 10;
const WAIT_MS = 60_000;

export const NEWCOMER_HEAD = ["queue", "in the same channel: median, ms", "worst", "in another: median, ms", "worst"];

/** From the first question of somebody new to the request upstream, one newcomer after another. */
export async function measureNewcomers(name: string, env: Record<string, string>): Promise<string[]> {
  await using resources = new AsyncDisposableStack();
  const upstream = await startPacedUpstream((question) => (question.includes("slow") ? SLOW_ANSWER : SHORT_ANSWER));
  resources.defer(upstream.close);
  const slack = await openSlack();
  resources.defer(slack.close);
  const dataDir = await mkdtemp(join(tmpdir(), "palaver-bench-"));
  resources.defer(() => rm(dataDir, { recursive: true, force: true }));
  const gateway = { GATEWAY_BASE_URL: upstream.url, GATEWAY_API_KEY: "none", CHAT_MODEL: "paced" };
  const platform = { SLACK_BOT_TOKEN: slack.botToken, SLACK_APP_TOKEN: slack.appToken, SLACK_API_URL: slack.apiUrl };
  const own = { DATA_DIR: dataDir, PORT: "0", LOCAL_CHAT: "off", CONTEXT_MESSAGES: "0" };
  const url = import.meta.resolve("./service-ours.ts");
  const worker = startWorker(url, [JSON.stringify({ ...gateway, ...platform, ...own, ...env })], 0, "ignore");
  resources.defer(worker.end);
  await until(() => slack.connections() > 0, "the bot is connected");

  const busy = slack.user({ name: "Busy" });
  const people = Array.from({ length: NEWCOMERS }, (_, index) => slack.user({ name: `New ${index}` }));
  const general = slack.channel({ name: "general", members: [busy, ...people] });
  const quiet = slack.channel({ name: "quiet", members: people });
  for (let index = 0; index < SLOW; index++) busy.mention(general, `slow ${index}`);
  const begun = () => Array.from({ length: SLOW }, (_, index) => upstream.startOf(`slow ${index}`)).filter(isTime);
  await until(() => begun().length > 0, "the first slow answer begins");
  const waits = { same: [] as number[], other: [] as number[] };
  for (const [index, person] of people.entries()) {
    const isSame = index % 2 === 0;
    const from = Date.now();
    person.mention(isSame ? general : quiet, `hi ${index}`);
    await until(() => isTime(upstream.startOf(`hi ${index}`)), "a newcomer is heard");
    waits[isSame ? "same" : "other"].push(upstream.startOf(`hi ${index}`) - from);
  }
  if (begun().length === SLOW) throw new Error("No slow question waited: nothing was measured.");
  return [name, ...[waits.same, waits.other].flatMap(toCells)];
}

function toCells(waits: readonly number[]): string[] {
  return [summarize([...waits]).median, Math.max(...waits)].map((ms) => formatNumber(ms, 0));
}

function isTime(ms: number): boolean {
  return !Number.isNaN(ms);
}

async function until(holds: () => boolean, what: string): Promise<void> {
  if ((await lookFor(holds, WAIT_MS)) === undefined) throw new Error(`It never came so far that ${what}.`);
}
