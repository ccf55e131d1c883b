import { type Logger, pino } from "pino";

export const silent: Logger = pino({ level: "silent" });

/** Returns a logger, and the parsed lines that it writes. */
export function recordingLog(): { log: Logger; lines: Array<Record<string, unknown>> } {
  const lines: Array<Record<string, unknown>> = [];
  const log = pino(
    { level: "trace" },
    { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  return { log, lines };
}
