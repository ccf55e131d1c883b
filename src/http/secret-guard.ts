import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Logger } from "pino";
import { BoundedMap } from "../concurrency/bounded-map.ts";

/** Failed attempts that a source can make before its first pause. */
const FREE_TRIES = 5;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** A source's failed attempts are forgotten this long after the last one. */
const FORGET_MS = 15 * 60_000;
/** The rate limit for failed attempts of all unknown sources together: this many at once, then one per second. */
const BURST_TRIES = 60;
const REFILL_MS = 1_000;
/** A source that has waited through this many pauses counts against a separate rate limit. */
const PATIENT_WAITS = 3;
/** Trusted sources have a separate limit, so that unknown ones cannot displace them. */
const MAX_SOURCES = 10_000;
const MAX_TRUSTED = 1_000;
const MAX_WRONG = 4;

export interface TrySource {
  address: string;
  /** The id of a known browser; the caller has verified it. */
  browser?: string | undefined;
}

export type Verdict = { kind: "right" } | { kind: "wrong" } | { kind: "wait"; waitMs: number };

/** Compares input with a secret, and slows down after each failed attempt. Logs failed attempts without their text. */
export interface SecretGuard {
  /** Ignores the input while its source must wait, so that the verdict reveals nothing about the input. */
  judge(given: string, source: TrySource): Verdict;
}

export interface SecretGuardOptions {
  secret: string;
  /** The secret's name in the log. */
  name: string;
  log: Logger;
  /** Returns milliseconds of a monotonic clock. */
  now(): number;
}

interface Failures {
  count: number;
  at: number;
  until: number;
  /** Digests of the latest wrong values. A page that is still open repeats its value, which is no new guess. */
  wrong: string[];
}

/**
 * After a few failed attempts, an address must pause for up to a minute. All unknown addresses share one rate limit, so
 * that guessing from many addresses does not help. An address that has sent the right secret before is exempt from that
 * limit. Addresses that waited through their pauses share a second limit. Known browsers are counted separately,
 * because everyone behind a proxy can have the same address. So people who know the secret get in at once from a known
 * address or browser, and after a pause from any other.
 */
export function createSecretGuard({ secret, name, log, now }: SecretGuardOptions): SecretGuard {
  const key = randomBytes(32);
  const digest = (text: string) => createHmac("sha256", key).update(text).digest();
  const expected = digest(secret);
  const failures = new Map<string, Failures>();
  const trusted = new Set<string>();
  const [unknown, patient] = [createPace(BURST_TRIES, now), createPace(1, now)];
  const waits = new BoundedMap<string, { count: number; until: number }>(MAX_SOURCES);
  /** Number of refused attempts from all sources since the last log line. */
  let refused = 0;

  function paceOf(address: string): Pace {
    const { count = 0, until = 0 } = waits.get(address) ?? {};
    return unknown.waitMs() > 0 && count >= PATIENT_WAITS && now() >= until ? patient : unknown;
  }

  function noteWait(address: string, waitMs: number): void {
    const { count = 0, until = 0 } = waits.get(address) ?? {};
    // An attempt during the pause does not count as waiting.
    if (now() >= until) waits.set(address, { count: count + 1, until: now() + waitMs });
  }

  function failuresOf(source: string): Failures {
    const known = failures.get(source);
    const entry =
      known !== undefined && now() - known.at < FORGET_MS ? known : { count: 0, at: now(), until: 0, wrong: [] };
    failures.delete(source);
    failures.set(source, entry);
    for (const oldest of failures.keys()) {
      if (failures.size <= MAX_SOURCES) break;
      failures.delete(oldest);
    }
    return entry;
  }

  function trust(address: string): void {
    trusted.delete(address);
    trusted.add(address);
    for (const oldest of trusted) {
      if (trusted.size <= MAX_TRUSTED) break;
      trusted.delete(oldest);
    }
  }

  function fail(source: string, hash: string, entry: Failures): void {
    entry.count += 1;
    entry.at = now();
    const doublings = entry.count - FREE_TRIES - 1;
    const pauseMs = doublings < 0 ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** doublings);
    entry.until = now() + pauseMs;
    entry.wrong = [hash, ...entry.wrong].slice(0, MAX_WRONG);
    // Only count refused attempts, because thousands of lines would fill the log.
    log.warn({ source, tries: entry.count, refusedBefore: refused, pauseMs }, `a wrong ${name} was given`);
    refused = 0;
  }

  return {
    judge(given, { address, browser }) {
      const source = browser === undefined ? address : `browser ${browser}`;
      const isUnknown = browser === undefined && !trusted.has(address);
      const hash = digest(given);
      const text = hash.toString("base64url");
      const entry = failures.get(source);
      if (entry?.wrong.includes(text)) return { kind: "wrong" };
      const pace = isUnknown ? paceOf(address) : undefined;
      const waitMs = Math.max(pace?.waitMs() ?? 0, (entry?.until ?? 0) - now());
      if (waitMs > 0) {
        refused += 1;
        noteWait(address, waitMs);
        return { kind: "wait", waitMs };
      }
      if (timingSafeEqual(hash, expected)) {
        trust(address);
        return { kind: "right" };
      }
      pace?.take();
      waits.delete(address);
      fail(source, text, failuresOf(source));
      return { kind: "wrong" };
    },
  };
}

interface Pace {
  /** Returns the milliseconds until the next attempt is allowed; 0 if it is allowed now. */
  waitMs(): number;
  take(): void;
}

/** A token bucket: allows `burst` attempts at once, then one every `REFILL_MS`. */
function createPace(burst: number, now: () => number): Pace {
  let [tries, at] = [burst, now()];

  function refill(): number {
    tries = Math.min(burst, tries + (now() - at) / REFILL_MS);
    at = now();
    return tries;
  }

  return {
    waitMs: () => Math.max(0, 1 - refill()) * REFILL_MS,
    take: () => void (tries -= 1),
  };
}
