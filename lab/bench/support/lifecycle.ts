import { availableParallelism, loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

/** Longest run of a bench that does not say otherwise, its cleaning up not included. */
const LIMIT_MS = 90_000;
/** No round is begun that would end after this. */
const ROUNDS_MS = 75_000;
const CLEANUP_MS = 8_000;

/**
 * Runs a bench, prints the text it resolves to and ends the process. What the bench defers to `resources` is undone
 * however it ends: in order, by an error, by a signal, or because it took too long. The process ends with
 * `process.exitCode`, which the bench may set, and with 1 when it did not come to its end.
 */
export async function runBench(
  work: (resources: AsyncDisposableStack) => Promise<string>,
  limitMs = LIMIT_MS,
): Promise<never> {
  const resources = new AsyncDisposableStack();
  const stopped = Promise.withResolvers<never>();
  const stop = (reason: string): void => stopped.reject(new Error(`The bench was stopped: ${reason}.`));
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);
  const timer = setTimeout(stop, limitMs, `it took longer than ${limitMs / 1_000} s`);
  try {
    process.stdout.write(`${await Promise.race([work(resources), stopped.promise])}\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
  clearTimeout(timer);
  await Promise.race([resources.disposeAsync().catch(() => {}), sleep(CLEANUP_MS)]);
  return process.exit();
}

/** Numbers of rounds from 0 on, at most `max`, fewer when the machine is too slow for them. */
export function* countRounds(max: number): Generator<number, void> {
  const startMs = performance.now();
  let longestMs = 0;
  for (let round = 0; round < max; round++) {
    const roundMs = performance.now();
    if (roundMs - startMs + longestMs > ROUNDS_MS) return;
    yield round;
    longestMs = Math.max(longestMs, performance.now() - roundMs);
  }
}

/** The machine, and how much else it does at this moment. */
export function describeMachine(): string {
  const [load = 0] = loadavg();
  return `${availableParallelism()} cores, load ${load.toFixed(1)}, ${process.platform} ${process.arch}, Node ${process.version}`;
}
