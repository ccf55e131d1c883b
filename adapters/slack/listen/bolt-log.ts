import { type Logger as BoltLogger, LogLevel } from "@slack/bolt";
import type { Logger } from "pino";

/**
 * Gives Bolt's own words to our log, one level lower: what it calls an error is repaired here or comes back as one.
 * Its debug lines carry whole messages and are dropped at every level. Its words may quote what came.
 */
export function toBoltLogger(log: Logger): BoltLogger {
  return {
    debug: () => {},
    info: (...parts) => log.debug(toLine(parts)),
    warn: (...parts) => log.debug(toLine(parts)),
    error(...parts) {
      const err = parts.find((part) => part instanceof Error);
      log.warn({ ...(err !== undefined && { err }) }, "Bolt reported a problem.");
      log.debug(toLine(parts));
    },
    setLevel: () => {},
    // Anything but debug: at that level Bolt logs bodies on ways of its own.
    getLevel: () => LogLevel.INFO,
    setName: () => {},
  };
}

function toLine(parts: readonly unknown[]): string {
  return `Bolt: ${parts.map((part) => (part instanceof Error ? part.message : String(part))).join(" ")}`;
}
