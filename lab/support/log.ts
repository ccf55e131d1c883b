import { type Logger, pino } from "pino";

/** A logger that says nothing. */
export const silent: Logger = pino({ level: "silent" });

/** A logger and the lines it has written, parsed. */
export function recordingLog(): { log: Logger; lines: Array<Record<string, unknown>> } {
  const lines: Array<Record<string, unknown>> = [];
  const log = pino(
    { level: "trace" },
    { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  return { log, lines };
}
