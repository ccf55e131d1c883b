import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";
import { describeForLog } from "./fields.ts";
import { createRedactor } from "./redact.ts";

const DEBUG = pino.levels.values["debug"] ?? 20;

export interface LogOptions {
  level: string;
  /** Values that must not appear in any line, besides everything that looks like a key. */
  secrets: readonly string[];
  /** Standard output when absent. */
  destination?: DestinationStream;
}

/**
 * A logger whose lines carry no secret: errors are reduced to known fields, and finished lines are redacted. Quotes in
 * an error's message appear at `debug` and below only, in a line of their own.
 */
export function createLogger({ level, secrets, destination = toStandardOutput() }: LogOptions): Logger {
  const redactor = createRedactor(secrets);
  const describe = (value: unknown) => describeForLog(value, redactor.text);
  const describeFields = (fields: object, withMessages: boolean) =>
    Object.fromEntries(
      Object.entries(fields).map(([key, value]) => [key, describeForLog(value, redactor.text, withMessages)]),
    );

  return pino(
    {
      level,
      // Collectors of the lines know process id and host name.
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // Pino's own copies every field that an error carries; fields of a child logger pass only through here.
      serializers: { err: describe },
      hooks: {
        streamWrite: redactor.line,
        logMethod(given, method, level) {
          const [first, ...rest] = given as unknown[];
          if (typeof first !== "object" || first === null) {
            Reflect.apply(method, this, given);
            return;
          }
          const fields = first instanceof Error ? { err: first } : first;
          Reflect.apply(method, this, [describeFields(fields, level <= DEBUG), ...rest]);
          const isCut = level > DEBUG && Object.values(fields).some((value) => value instanceof Error);
          if (isCut) this.debug(fields, "the same, with all that its error said");
        },
      },
    },
    destination,
  );
}

/** Writes each line at once. Pino's default writes in the background, where last words overtake earlier lines. */
function toStandardOutput(): DestinationStream {
  return pino.destination({ dest: 1, sync: true });
}
