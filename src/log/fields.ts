export type Redact = (text: string) => string;

const MAX_DEPTH = 6;
/** Maximum number of values in one log line, because an SDK's object can reference everything that the SDK holds. */
const MAX_VALUES = 300;
const MAX_CHARS = 4000;
/**
 * Maximum length of a text that is redacted. Redaction comes before truncation, because half a key would not be
 * recognized.
 */
const MAX_CHARS_READ = 50_000;

/**
 * Fields of an error that are logged if they are numbers or single words. Headers, bodies, requests and configurations
 * are never logged.
 */
const ERROR_FIELDS = [
  "name",
  "type",
  "kind",
  "method",
  "code",
  "param",
  "errcode",
  "syscall",
  "status",
  "retryAfterMs",
] as const;
const NAME = /^[\w./:@+[\]-]{1,120}$/;
const FRAME = /^ +at .*$/;

/**
 * Turns a value into plain values of limited size for the log. Logs only known fields of an error, at any depth, and
 * only the size of bytes. Redacts each text before truncating it. An error's message can quote people, the model, a
 * file name or a gateway, so without `withMessages` only messages of a `LoggableError` are logged. Never throws.
 */
export function describeForLog(value: unknown, redact: Redact, withMessages = false): unknown {
  let valuesLeft = MAX_VALUES;

  function describe(value: unknown, depth: number): unknown {
    if (typeof value === "string") return cut(value, redact);
    if (typeof value === "bigint") return String(value);
    if (typeof value !== "object" || value === null) return value;
    if (depth > MAX_DEPTH) return "[too deep]";
    if (value instanceof Error) return describeError(value, depth);
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
    if (value instanceof URL) return cut(value.href, redact);
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
    if (Array.isArray(value)) return takeFew(value).map((item) => describe(item, depth + 1));
    return Object.fromEntries(takeFew(Object.entries(value)).map(([key, item]) => [key, describe(item, depth + 1)]));
  }

  function describeError(error: Error, depth: number): Record<string, unknown> {
    const fields: Array<[string, unknown]> = ERROR_FIELDS.map((name) => [name, Reflect.get(error, name)]);
    const known = fields.filter(
      ([, field]) => typeof field === "number" || (typeof field === "string" && isName(field)),
    );
    const message: unknown = withMessages ? error.message : Reflect.get(error, "logMessage");
    if (typeof message === "string") known.push(["message", message]);
    known.push(["stack", toFrames(error)]);
    if (error instanceof AggregateError) known.push(["errors", takeFew(error.errors).map(toCause)]);
    if (error.cause !== undefined) known.push(["cause", toCause(error.cause)]);
    return Object.fromEntries(takeFew(known).map(([name, field]) => [name, describe(field, depth + 1)]));
  }

  /** Returns a cause if it is an error or a number. Any other cause can contain a whole response or a person's text. */
  function toCause(cause: unknown): unknown {
    if (cause instanceof Error || typeof cause === "number") return cause;
    return withMessages && typeof cause === "string" ? cause : "[not an error]";
  }

  function takeFew<T>(items: readonly T[]): T[] {
    const few = items.slice(0, valuesLeft);
    valuesLeft -= few.length;
    return few;
  }

  try {
    return describe(value, 0);
  } catch {
    // A getter of another library can throw, but logging must not.
    return "[unreadable]";
  }
}

/** True if a text from outside is a name, such as an id or a code, and not a sentence. */
export function isName(text: string): boolean {
  return NAME.test(text);
}

/** Returns a stack's frames without the error's message, because a message can contain lines that look like frames. */
function toFrames({ message, stack = "" }: Error): string {
  const behind = message === "" ? stack : stack.slice(stack.indexOf(message) + message.length);
  const frames = stack.includes(message) ? behind.split("\n").filter((line) => FRAME.test(line)) : [];
  return frames.map((line) => line.trim()).join("\n");
}

function cut(text: string, redact: Redact): string {
  const clean = redact(text.slice(0, MAX_CHARS_READ));
  return clean.length <= MAX_CHARS ? clean : `${clean.slice(0, MAX_CHARS)}… (${text.length} characters)`;
}
