import { setTimeout as sleep } from "node:timers/promises";
import { steady } from "../pacing/scenarios.ts";
import { lookFor } from "../support/look-for.ts";
import { openCrew } from "./support/crew.ts";
import { describeMachine, runBench } from "./support/lifecycle.ts";
import { wordsOf } from "./support/paced-upstream.ts";
import type { ScaleStage } from "./support/scale-stages.ts";
import { formatNumber, summarize } from "./support/statistics.ts";
import { formatTable } from "./support/table.ts";

const ROLES = ["ingress", "ingress", "worker", "worker", "worker"] as const;
/** At this rate and length, the platforms' limits permit an edit every second. */
const ANSWER = steady(150, 30);
const ASK_MS = 4_000;
/** Number of questions before the deploy starts, and after it has ended. */
const CALM = 5;
/** Pause between two processes. */
const PAUSE_MS = 3_000;
const WAIT_MS = 60_000;
const LIMIT_MS = 280_000;
const GAP_MS = 1_000;
const KILLED_GAP_MS = 5_000;
/**
 * Replaces five processes one after another while questions arrive. An old process stops when its replacement is ready.
 */
await runBench(async (resources) => {
  const { platform, signal, stage, start } = await openCrew(resources, ANSWER, ["SIGTERM", "SIGKILL"]);
  const crew = await Promise.all(ROLES.map(start));
  const asked: Array<{ read: Awaited<ReturnType<ScaleStage["ask"]>>; atMs: number }> = [];
  const deploying = { fromMs: Number.POSITIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };
  let calm = CALM;
  async function askOn(): Promise<void> {
    while (calm > 0) {
      if (Date.now() > deploying.toMs) calm -= 1;
      // Delivers events to the receiving processes in turn, like a load balancer.
      stage.deliverTo(crew[asked.length % 2]?.url ?? "");
      asked.push({ read: await stage.ask(`question ${asked.length}`), atMs: Date.now() });
      await sleep(ASK_MS);
    }
  }
  async function deploy(): Promise<string[]> {
    await lookFor(() => asked.length >= CALM, WAIT_MS);
    deploying.fromMs = Date.now();
    const ends: string[] = [];
    for (const [slot, role] of ROLES.entries()) {
      const before = crew[slot];
      crew[slot] = await start(role);
      ends.push(String(await before?.end(signal)));
      await sleep(PAUSE_MS);
    }
    deploying.toMs = Date.now();
    return ends;
  }
  const [ends] = await Promise.all([deploy(), askOn()]);
  const words = wordsOf(ANSWER).join("").replaceAll(/\s+/g, " ").trimEnd();
  const isWhole = (text: string) => text.replaceAll(/\s+/g, " ").trimEnd() === words;
  await lookFor(() => asked.every(({ read }) => isWhole(read.text())), WAIT_MS);
  const isCalm = ({ read, atMs }: (typeof asked)[number]) => {
    const endMs = read.states().at(-1)?.atMs ?? Number.POSITIVE_INFINITY;
    return endMs < deploying.fromMs || atMs > deploying.toMs;
  };
  const calmGapMs = summarize(asked.filter(isCalm).map(({ read }) => longestGap(read.states()))).median;
  const tooLongMs = calmGapMs + (signal === "SIGKILL" ? KILLED_GAP_MS : GAP_MS);
  const rows = [true, false].map((calmOnes) => {
    const all = asked.filter((one) => isCalm(one) === calmOnes).map(({ read }) => read);
    const gaps = all.map((read) => longestGap(read.states()));
    return [
      calmOnes ? "before and after" : "during",
      String(all.length),
      String(all.filter((read) => read.states().length === 0).length),
      String(all.filter((read) => read.count() > 1).length),
      String(all.filter((read) => read.states().length > 0 && !isWhole(read.text())).length),
      formatNumber(summarize(gaps).median / 1_000, 2),
      formatNumber(Math.max(...gaps) / 1_000, 2),
      String(gaps.filter((ms) => ms > tooLongMs).length),
    ];
  });
  return [
    `deploy: ${platform}, ${ROLES.length} processes replaced with ${signal} (exit codes: ${ends.join(", ")}), a question every ${ASK_MS / 1_000} s, ${ANSWER.length} tokens at 30 a second; ${describeMachine()}.`,
    `Gap: the longest pause of a growing answer, in seconds; too long is ${formatNumber(tooLongMs / 1_000, 2)}, ${signal === "SIGKILL" ? "five seconds" : "a second"} more than the median before and after.`,
    "",
    formatTable(["asked", "questions", "lost", "doubled", "wrong", "gap, median", "longest", "too long"], rows),
    `${stage.countRefused()} calls refused for too many.`,
  ].join("\n");
}, LIMIT_MS);

/** Returns the longest time without new text, in milliseconds. */
function longestGap(states: ReadonlyArray<{ atMs: number; length: number }>): number {
  let [longest, length, since] = [0, 0, states[0]?.atMs ?? 0];
  for (const state of states) {
    if (state.length <= length) continue;
    if (length > 0) longest = Math.max(longest, state.atMs - since);
    [length, since] = [state.length, state.atMs];
  }
  return longest;
}
