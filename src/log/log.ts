import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";
import { describeForLog } from "./fields.ts";
import { createRedactor } from "./redact.ts";

const DEBUG = pino.levels.values["debug"] ?? 20;

export interface LogOptions {
  level: string;
  /** Secret values to redact. Everything that looks like a key is redacted too. */
  secrets: readonly string[];
  tokens: readonly RegExp[];
  /** Absent: standard output. */
  destination?: DestinationStream;
}

/**
 * Creates a logger that never logs secrets: it logs only known fields of errors and redacts each finished line. An
 * error's message, which can quote people, appears only at `debug` and below, on a separate line.
 */
export function createLogger({ level, secrets, tokens, destination = toStandardOutput() }: LogOptions): Logger {
  const redactor = createRedactor(secrets, tokens);
  const describe = (value: unknown) => describeForLog(value, redactor.text);
  const describeFields = (fields: object, withMessages: boolean) =>
    Object.fromEntries(
      Object.entries(fields).map(([key, value]) => [key, describeForLog(value, redactor.text, withMessages)]),
    );

  return pino(
    {
      level,
      // Log collectors already add the process id and the host name.
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // Pino's own serializer would copy every field of an error. A child logger's fields pass only through this
      // serializer.
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
          if (isCut) this.debug(fields, "the same error in full");
        },
      },
    },
    destination,
  );
}

/** Writes each line synchronously. With Pino's default, the last lines before an exit can be lost. */
function toStandardOutput(): DestinationStream {
  return pino.destination({ dest: 1, sync: true });
}
