import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";
import { describeForLog } from "./log/fields.ts";
import { createRedactor } from "./log/redact.ts";

export interface LogOptions {
  level: string;
  /** Values that must not appear in any line, besides everything that looks like a key. */
  secrets: readonly string[];
  /** Standard output when absent. */
  destination?: DestinationStream;
}

/**
 * A logger whose lines carry no secret: errors are reduced to known fields wherever they stand, and every
 * finished line passes the redaction on its way out.
 */
export function createLogger({ level, secrets, destination = toStandardOutput() }: LogOptions): Logger {
  const redactor = createRedactor(secrets);
  const describe = (value: unknown) => describeForLog(value, redactor.text);

  return pino(
    {
      level,
      // Process id and host name are known to whoever collects the lines.
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        log: (fields) => Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, describe(value)])),
      },
      // Pino's own copies every field that an error carries; fields of a child logger pass only through here.
      serializers: { err: describe },
      hooks: { streamWrite: redactor.line },
    },
    destination,
  );
}

/**
 * Writes each line before the next is made. Pino's own default writes in the background, where the last words of a
 * process that ends overtake the lines before them.
 */
function toStandardOutput(): DestinationStream {
  return pino.destination({ dest: 1, sync: true });
}
