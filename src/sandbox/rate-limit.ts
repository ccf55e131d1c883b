import { toRateLimited } from "./errors.ts";

const WINDOW_MS = 60_000;

/** Counts one request of a key to a model. Throws the 429 with `Retry-After` in whole seconds; a refused request is not counted. */
export type CountRequest = (key: string, model: string) => void;

/** At most `requestsPerMinute` in any 60 seconds, for each key and model by itself. `now` is Unix milliseconds. */
export function createRateLimit(requestsPerMinute: number, now: () => number): CountRequest {
  const windows = new Map<string, number[]>();

  return (key, model) => {
    if (requestsPerMinute === Number.POSITIVE_INFINITY) return;
    const id = `${key} ${model}`;
    const at = now();
    const recent = (windows.get(id) ?? []).filter((countedAt) => countedAt > at - WINDOW_MS);
    windows.set(id, recent);
    if (recent.length >= requestsPerMinute) {
      const freeAt = (recent[0] ?? at) + WINDOW_MS;
      throw toRateLimited(model, { "retry-after": String(Math.ceil((freeAt - at) / 1000)) });
    }
    recent.push(at);
  };
}
