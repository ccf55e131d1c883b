import type { Logger } from "pino";
import type { Service } from "./service.ts";

/** Signals closer together than this count as one. */
const SAME_SIGNAL_MS = 1_000;
/**
 * The last part of the grace period, reserved for closing: last edits of aborted answers, open calls and connections.
 * Each step has its own timeout.
 */
const CLOSE_MS = 7_000;

const LAUNCHER_POLL_MS = 500;

interface EndOptions {
  exitCode?: number;
  /** Maximum time for the shutdown. Use 0 if running work can no longer be stored. */
  graceMs?: number;
}

export interface Shutdown {
  begin(why: string, options?: EndOptions): void;
  isBegun(): boolean;
}

/**
 * Creates the function that shuts the process down. The first call closes the service in order, even during the start.
 * A second call exits at once.
 */
export function createEnding(starting: Promise<Pick<Service, "close">>, usualGraceMs: number, log: Logger): Shutdown {
  let askedAt: number | undefined;

  async function end(why: string, { exitCode = 0, graceMs = usualGraceMs }: EndOptions): Promise<void> {
    if (askedAt !== undefined) {
      // In a terminal, Ctrl-C sends the signal twice: the terminal sends it, and npm forwards it.
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
    // Do nothing more: a failed start has reported its own error and left nothing open.
    const service = await starting.catch(() => undefined);
    await service?.close(longestMs - CLOSE_MS);
    process.exit(exitCode);
  }

  return { begin: (why, options = {}) => void end(why, options), isBegun: () => askedAt !== undefined };
}

/**
 * Calls `onGone` once when the parent process has ended. A killed launcher such as npm does not stop its children, and
 * this process would then block the port and the data. Do not use it if the parent exits on purpose. The timer does not
 * keep the process alive.
 */
export function watchLauncher(onGone: () => void): void {
  const launcher = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === launcher) return;
    clearInterval(timer);
    onGone();
  }, LAUNCHER_POLL_MS).unref();
}
