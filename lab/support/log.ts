import { type Logger, pino } from "pino";

/** A logger that writes nothing. */
export const silent: Logger = pino({ level: "silent" });

/** A logger and the parsed lines that it has written. */
export function recordingLog(): { log: Logger; lines: Array<Record<string, unknown>> } {
  const lines: Array<Record<string, unknown>> = [];
  const log = pino(
    { level: "trace" },
    { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  return { log, lines };
}
