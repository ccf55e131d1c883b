import type { Logger } from "pino";
import type { Service } from "./service.ts";

/** Signals closer together than this count as one. */
const SAME_SIGNAL_MS = 1_000;
/**
 * The part of the grace period for closing: last words of aborted answers, open calls, connections. Each has its own
 * timeout.
 */
const CLOSE_MS = 7_000;

const LAUNCHER_POLL_MS = 500;

interface EndOptions {
  exitCode?: number;
  /** Longest that the shutdown takes. 0 if running work cannot be written any more, so waiting would not help. */
  graceMs?: number;
}

export interface Shutdown {
  begin(why: string, options?: EndOptions): void;
  isBegun(): boolean;
}

/**
 * Returns a function that shuts the process down in order the first time, even while it starts, and at once the second
 * time.
 */
export function createEnding(starting: Promise<Pick<Service, "close">>, usualGraceMs: number, log: Logger): Shutdown {
  let askedAt: number | undefined;

  async function end(why: string, { exitCode = 0, graceMs = usualGraceMs }: EndOptions): Promise<void> {
    if (askedAt !== undefined) {
      // Ctrl-C at a terminal reaches this process twice: from the terminal, and from npm.
      if (performance.now() - askedAt > SAME_SIGNAL_MS) process.exit(1);
      return;
    }
    askedAt = performance.now();
    const longestMs = Math.max(graceMs, CLOSE_MS);
    log.info(`${why}: finishing the running work within ${longestMs / 1_000} s; a second signal exits at once`);
    setTimeout(() => {
      log.error("the shutdown timed out and is aborted; the next start resumes open work");
      process.exit(1);
    }, longestMs);
    // A failed start reports its own error, and has left nothing to close.
    const service = await starting.catch(() => undefined);
    await service?.close(longestMs - CLOSE_MS);
    process.exit(exitCode);
  }

  return { begin: (why, options = {}) => void end(why, options), isBegun: () => askedAt !== undefined };
}

/**
 * Calls `onGone` once when the parent process has ended: a killed launcher such as npm does not stop its children, and
 * the survivor would block port and data. Don't use it if the parent exits on purpose. Keeps no process alive.
 */
export function watchLauncher(onGone: () => void): void {
  const launcher = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === launcher) return;
    clearInterval(timer);
    onGone();
  }, LAUNCHER_POLL_MS).unref();
}
