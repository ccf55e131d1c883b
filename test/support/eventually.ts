import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { createPatience } from "../../lab/support/patience.ts";

const LOOK_MS = 50;

type Poll<T> = ReturnType<typeof expect.poll<T>>;

/**
 * Like `expect.poll`, but with a limit on silence: it fails if the value is not the expected one and has not changed
 * for `silenceMs`.
 */
export function eventually<T>(read: () => T, silenceMs?: number): Poll<T> {
  const until = (check: (value: Awaited<T>) => void) => retry(read, check, silenceMs);
  return toMatchers((matcher, given) => until((value) => callMatcher(expect(value), matcher, given)), {
    not: toMatchers((matcher, given) => until((value) => callMatcher(expect(value).not, matcher, given))),
  }) as Poll<T>;
}

type Call = (matcher: PropertyKey, given: readonly unknown[]) => Promise<void>;

function toMatchers(call: Call, own: Record<PropertyKey, unknown> = {}): object {
  return new Proxy(own, {
    get: (_, matcher) => own[matcher] ?? ((...given: readonly unknown[]) => call(matcher, given)),
  });
}

function callMatcher(assertion: object, matcher: PropertyKey, given: readonly unknown[]): void {
  const check: unknown = Reflect.get(assertion, matcher);
  if (typeof check !== "function") throw new TypeError(`There is no matcher ${String(matcher)}.`);
  Reflect.apply(check, assertion, given);
}

/** Reads until the check passes. If the value has not changed for long, rejects with the check's error. */
async function retry<T>(read: () => T, check: (value: Awaited<T>) => void, silenceMs?: number): Promise<void> {
  let isLost = false;
  let last: string | undefined;
  const patience = createPatience(() => void (isLost = true), silenceMs);
  try {
    for (;;) {
      const value = await read();
      try {
        return check(value);
      } catch (error) {
        if (isLost) throw error;
      }
      const look = JSON.stringify(value);
      if (look !== last) patience.moved();
      last = look;
      await sleep(LOOK_MS);
    }
  } finally {
    patience.end();
  }
}
