import type { Keyv } from "keyv";
import type { Logger } from "pino";
import type { z } from "zod";

/** The keys that each log has reported, so that a damaged value with several readers is logged once. */
const loggedKeys = new WeakMap<Logger, Set<string>>();
/** Maximum number of damaged keys of one kind that a log reports. */
const MAX_LOGGED_KEYS = 1_000;

/** Iterates over everything in a namespace that `Stores.open` opened. */
export async function* walk({ namespace, iterator }: Keyv): AsyncGenerator<[key: string, value: unknown]> {
  if (iterator === undefined) throw new TypeError(`The store of ${namespace} cannot be iterated.`);
  yield* iterator(undefined) as AsyncIterable<[string, unknown]>;
}

/** Returns the keys of a namespace, each once, even if the store changes meanwhile. */
export async function keysOf(keyv: Keyv): Promise<Set<string>> {
  return new Set(await Array.fromAsync(walk(keyv), ([key]) => key));
}

/** Parses JSON from a store or another process; undefined if the text does not match `schema`. */
export function parseStored<T>(schema: z.ZodType<T>, text: string): T | undefined {
  return schema.safeParse(parseJson(text)).data;
}

/** Creates a `parseStored` that logs each unreadable text of one `kind` once. */
export function createStoredParser<T>(
  schema: z.ZodType<T>,
  place: string,
  log: Logger,
): (text: string) => T | undefined {
  const logDamage = createDamageLog(log);
  return (text) => {
    const parsed = schema.safeParse(parseJson(text));
    if (!parsed.success) logDamage(`${place}${kindOf(text)}`);
    return parsed.data;
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the text's `kind` as a suffix for the log. A newer version can send kinds that this one does not know. */
function kindOf(text: string): string {
  const [, kind] = /"kind":"(\w{1,40})"/.exec(text) ?? [];
  return kind === undefined ? "" : `:${kind}`;
}

export function createDamageLog(log: Logger): (key: string) => void {
  const logged = loggedKeys.get(log) ?? new Set<string>();
  loggedKeys.set(log, logged);
  return (key) => {
    if (logged.has(key) || logged.size >= MAX_LOGGED_KEYS) return;
    logged.add(key);
    log.error({ key }, "a stored value is invalid and is treated as missing");
  };
}
