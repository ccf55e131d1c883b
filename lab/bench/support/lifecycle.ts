import { availableParallelism, loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

/** Default time limit of a bench, without its cleanup. */
const LIMIT_MS = 90_000;
/** A round that would probably end later than this does not start. */
const ROUNDS_MS = 75_000;
const CLEANUP_MS = 8_000;

/**
 * Runs a bench, prints the text that it resolves to, and ends the process. Always disposes of `resources`: after
 * success, an error, a signal or a timeout. The exit code is 1 if the bench did not finish; otherwise it is
 * `process.exitCode`, which the bench can set.
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

/** Yields the numbers of rounds from 0: at most `max`, and fewer on a slow machine. */
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

/** Describes the machine and its current load. */
export function describeMachine(): string {
  const [load = 0] = loadavg();
  return `${availableParallelism()} cores, load ${load.toFixed(1)}, ${process.platform} ${process.arch}, Node ${process.version}`;
}
