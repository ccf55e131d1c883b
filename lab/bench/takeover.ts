import { setTimeout as sleep } from "node:timers/promises";
import { steady } from "../pacing/scenarios.ts";
import { lookFor } from "../support/look-for.ts";
import type { RunningService } from "../support/service.ts";
import { openCrew } from "./support/crew.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";
import { wordsOf } from "./support/paced-upstream.ts";
import { formatNumber, summarize } from "./support/statistics.ts";
import { formatTable } from "./support/table.ts";

const ANSWER = steady(200, 30);
const LAST = wordsOf(ANSWER).at(-1)?.trim() ?? "";
const ROUNDS = 20;
/** The answer grows for `GROW_MS` before its process is killed, and in each round `LATER_MS` longer. */
const GROW_MS = 2_500;
const LATER_MS = 83;
/** After this time, the dead process's last call has arrived. */
const LATE_CALL_MS = 500;
const WAIT_MS = 30_000;
/** Starts no round later than this. */
const ROUNDS_MS = 360_000;
const LIMIT_MS = 460_000;
/**
 * Kills the process that writes an answer, once per round, and measures how soon another process continues the answer.
 */
await runBench(async (resources) => {
  const { platform, signal, stage, upstream, start } = await openCrew(resources, ANSWER, ["SIGKILL", "SIGSTOP"]);
  const ingress = await start("ingress");
  stage.deliverTo(ingress.url);
  let workers: RunningService[] = await Promise.all([start("worker"), start("worker")]);
  const [asks, grows]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS && performance.now() < ROUNDS_MS; round++) {
    const question = `question ${round}`;
    const answer = await stage.ask(question);
    if ((await lookFor(() => answer.states().length > 0, WAIT_MS)) === undefined) throw new Error("No answer starts.");
    await sleep(GROW_MS + round * LATER_MS);
    const writer = await findWriter(workers);
    const fromMs = Date.now();
    process.kill(writer.pid, signal);
    const isLate = ({ atMs }: { atMs: number }) => atMs >= fromMs + LATE_CALL_MS;
    const lengthOf = () => Math.max(0, ...answer.states().flatMap((state) => (isLate(state) ? [] : state.length)));
    const isGrown = () => answer.states().find((state) => isLate(state) && state.length > lengthOf());
    const grown = await lookFor(isGrown, WAIT_MS);
    if (grown === undefined) throw new Error(`The answer to ${question} was not continued.`);
    asks.push(upstream.continuedAt(question) - fromMs);
    grows.push(grown.atMs - fromMs);
    await writer.end("SIGKILL");
    const [replacement] = await Promise.all([start("worker"), lookFor(() => answer.text().includes(LAST), WAIT_MS)]);
    workers = [...workers.filter((worker) => worker !== writer), replacement];
  }
  return [
    `takeover: ${platform}, ${grows.length} times ${signal} to the process that writes an answer of 30 tokens a second; ${describeMachine()}.`,
    "Seconds from the signal.",
    "",
    formatTable(["", "median", "longest"], [toRow("asks the model again", asks), toRow("the answer grows", grows)]),
    `${stage.countRefused()} calls refused for too many.`,
  ].join("\n");
}, LIMIT_MS);

async function findWriter(workers: readonly RunningService[]): Promise<RunningService> {
  for (const worker of workers) {
    const metrics = await (await fetch(`${worker.url}/metrics`)).text();
    if (Number(/^palaver_upstream_streams_open (\d+)/m.exec(metrics)?.[1]) > 0) return worker;
  }
  throw new Error("No process writes the answer.");
}

function toRow(name: string, durations: readonly number[]): string[] {
  return [name, ...[summarize([...durations]).median, Math.max(...durations)].map((ms) => formatNumber(ms / 1_000, 1))];
}
