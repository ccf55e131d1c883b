import { steady } from "../../pacing/scenarios.ts";
import { openSlack } from "../../slack-sim/control.ts";
import { lookFor } from "../../support/look-for.ts";
import { makeDataDir } from "../../support/service.ts";
import { startPacedUpstream } from "./paced-upstream.ts";
import { formatNumber, summarize } from "./statistics.ts";
import { startWorker } from "./worker.ts";

/** Number of one person's questions in threads of one channel. Their answers take longer than the measurement. */
const SLOW = 40;
const SLOW_ANSWER = steady(240, 2);
const SHORT_ANSWER = steady(4, 40);
const NEWCOMERS = 10;
const WAIT_MS = 60_000;

export const NEWCOMER_HEAD = ["queue", "in the same channel: median, ms", "worst", "in another: median, ms", "worst"];

/**
 * Measures the time from a new person's first question to its request to the model, for one new person after another.
 */
export async function measureNewcomers(name: string, env: Record<string, string>): Promise<string[]> {
  await using resources = new AsyncDisposableStack();
  const upstream = await startPacedUpstream((question) => (question.includes("slow") ? SLOW_ANSWER : SHORT_ANSWER));
  resources.defer(upstream.close);
  const slack = await openSlack();
  resources.defer(slack.close);
  const { path: dataDir, remove } = await makeDataDir();
  resources.defer(remove);
  const gateway = { GATEWAY_BASE_URL: upstream.url, GATEWAY_API_KEY: "none", CHAT_MODEL: "paced" };
  const platform = { SLACK_BOT_TOKEN: slack.botToken, SLACK_APP_TOKEN: slack.appToken, SLACK_API_URL: slack.apiUrl };
  const own = { DATA_DIR: dataDir, PORT: "0", LOCAL_CHAT: "off", CONTEXT_MESSAGES: "0" };
  const url = import.meta.resolve("./service-ours.ts");
  const worker = startWorker(url, [JSON.stringify({ ...gateway, ...platform, ...own, ...env })], 0, "ignore");
  resources.defer(worker.end);
  await until(() => slack.connections() > 0, "the bot connects");

  const busy = slack.user({ name: "Busy" });
  const people = Array.from({ length: NEWCOMERS }, (_, index) => slack.user({ name: `New ${index}` }));
  const general = slack.channel({ name: "general", members: [busy, ...people] });
  const quiet = slack.channel({ name: "quiet", members: people });
  for (let index = 0; index < SLOW; index++) busy.mention(general, `slow ${index}`);
  const listStarts = () => Array.from({ length: SLOW }, (_, index) => upstream.startOf(`slow ${index}`)).filter(isTime);
  await until(() => listStarts().length > 0, "the first slow answer starts");
  const waits = { same: [] as number[], other: [] as number[] };
  for (const [index, person] of people.entries()) {
    const isSame = index % 2 === 0;
    const from = Date.now();
    person.mention(isSame ? general : quiet, `hi ${index}`);
    await until(() => isTime(upstream.startOf(`hi ${index}`)), "the newcomer gets an answer");
    waits[isSame ? "same" : "other"].push(upstream.startOf(`hi ${index}`) - from);
  }
  if (listStarts().length === SLOW) throw new Error("No slow question had to wait, so the measurement means nothing.");
  return [name, ...[waits.same, waits.other].flatMap(toCells)];
}

function toCells(waits: readonly number[]): string[] {
  return [summarize([...waits]).median, Math.max(...waits)].map((ms) => formatNumber(ms, 0));
}

function isTime(ms: number): boolean {
  return !Number.isNaN(ms);
}

async function until(holds: () => boolean, what: string): Promise<void> {
  if ((await lookFor(holds, WAIT_MS)) === undefined) throw new Error(`Waited too long until ${what}.`);
}
