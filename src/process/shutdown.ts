import type { Logger } from "pino";

/** Signals closer together than this are one. */
const SAME_SIGNAL_MS = 1_000;
/** Longest that the end may take beyond the grace period. */
const CLOSE_MS = 20_000;

interface Closable {
  /** What runs may go on for so long before it is cut. */
  close(graceMs: number): Promise<void>;
}

interface HowToEnd {
  exitCode?: number;
  /** Where nothing of what runs could be written any more, waiting for it would help nobody. */
  graceMs?: number;
}

/**
 * What ends the process: in order when it is called first, also while the service is just starting, and at once when it
 * is called later. With exit code 0 and the usual grace where nothing else is said.
 */
export function createEnding(
  starting: Promise<Closable>,
  usualGraceMs: number,
  log: Logger,
): (why: string, how?: HowToEnd) => void {
  let askedAt: number | undefined;

  async function end(why: string, { exitCode = 0, graceMs = usualGraceMs }: HowToEnd): Promise<void> {
    if (askedAt !== undefined) {
      // Ctrl-C at a terminal reaches this process twice: from the terminal, and passed on by npm.
      if (performance.now() - askedAt > SAME_SIGNAL_MS) process.exit(1);
      return;
    }
    askedAt = performance.now();
    log.info(`${why}: finishing what runs, at most ${graceMs / 1_000} s; a signal more ends it at once`);
    setTimeout(() => {
      log.error("the service did not end in time and is cut; open work is taken up again at the next start");
      process.exit(1);
    }, graceMs + CLOSE_MS);
    await (await starting).close(graceMs);
    process.exit(exitCode);
  }

  return (why, how = {}) => void end(why, how);
}
