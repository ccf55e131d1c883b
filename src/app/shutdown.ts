import type { Logger } from "pino";

/** Signals closer together than this are one. */
const SAME_SIGNAL_MS = 1_000;
/**
 * Kept of the grace for the end itself: the last words of what was cut, the calls under way, the connections. Each of
 * them is bounded by itself; together they take less.
 */
const CLOSE_MS = 7_000;

interface Closable {
  /** What runs may go on for so long before it is cut. */
  close(graceMs: number): Promise<void>;
}

interface HowToEnd {
  exitCode?: number;
  /** Longest that the end may take. Where nothing of what runs could be written any more, waiting would help nobody. */
  graceMs?: number;
}

/** Ends the process. */
export interface Ending {
  begin(why: string, how?: HowToEnd): void;
  isBegun(): boolean;
}

/**
 * What ends the process: in order when it is begun first, also while the service is just starting, and at once when it
 * is begun again. With exit code 0 and the usual grace where nothing else is said.
 */
export function createEnding(starting: Promise<Closable>, usualGraceMs: number, log: Logger): Ending {
  let askedAt: number | undefined;

  async function end(why: string, { exitCode = 0, graceMs = usualGraceMs }: HowToEnd): Promise<void> {
    if (askedAt !== undefined) {
      // Ctrl-C at a terminal reaches this process twice: from the terminal, and passed on by npm.
      if (performance.now() - askedAt > SAME_SIGNAL_MS) process.exit(1);
      return;
    }
    askedAt = performance.now();
    const longestMs = Math.max(graceMs, CLOSE_MS);
    log.info(`${why}: finishing what runs, at most ${longestMs / 1_000} s; a signal more ends it at once`);
    setTimeout(() => {
      log.error("the service did not end in time and is cut; open work is taken up again at the next start");
      process.exit(1);
    }, longestMs);
    // A start that failed says so itself, and has left nothing to close.
    const service = await starting.catch(() => undefined);
    await service?.close(longestMs - CLOSE_MS);
    process.exit(exitCode);
  }

  return { begin: (why, how = {}) => void end(why, how), isBegun: () => askedAt !== undefined };
}
