import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Logger } from "pino";
import { BoundedMap } from "../concurrency/bounded-map.ts";

/** How many wrong tries a source has before its first pause. */
const FREE_TRIES = 5;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** A source's wrong tries are forgotten this long after the last one. */
const FORGET_MS = 15 * 60_000;
/** The limit for wrong tries of all unknown sources together: this many at once, then one per second. */
const BURST_TRIES = 60;
const REFILL_MS = 1_000;
/** After this many pauses, a source that waited for their ends gets a separate pace. */
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

/** Compares input with a secret, and slows down after each wrong try. Logs wrong tries without their text. */
export interface SecretGuard {
  /** Does not look at the input while its source must wait, so that the verdict reveals nothing about the input. */
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
  /** Digests of the latest wrong tries. A page that is still open repeats a wrong value; that is no new guess. */
  wrong: string[];
}

/**
 * After a few wrong tries, an address must pause for up to a minute. All unknown addresses share one pace, which limits
 * guesses from many addresses. An address that was right before is exempt. Addresses that waited through their pauses
 * share a second pace. Known browsers are counted separately, because everyone behind a proxy can have the same
 * address. So people who know the secret get in at once from a known address or browser, and after a pause from any
 * other.
 */
export function createSecretGuard({ secret, name, log, now }: SecretGuardOptions): SecretGuard {
  const key = randomBytes(32);
  const digest = (text: string) => createHmac("sha256", key).update(text).digest();
  const expected = digest(secret);
  const failures = new Map<string, Failures>();
  const trusted = new Set<string>();
  const [unknown, patient] = [createPace(BURST_TRIES, now), createPace(1, now)];
  const waits = new BoundedMap<string, { count: number; until: number }>(MAX_SOURCES);
  /** How many tries from all sources were refused since the last log line. */
  let refused = 0;

  function paceOf(address: string): Pace {
    const { count = 0, until = 0 } = waits.get(address) ?? {};
    return unknown.waitMs() > 0 && count >= PATIENT_WAITS && now() >= until ? patient : unknown;
  }

  function noteWait(address: string, waitMs: number): void {
    const { count = 0, until = 0 } = waits.get(address) ?? {};
    // A try before the pause is over does not count as waiting.
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
    // Refused tries are only counted, because thousands of lines would fill the log.
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
  /** Returns the milliseconds until the next try; 0 if a try is allowed now. */
  waitMs(): number;
  take(): void;
}

/** Allows `burst` tries at once, then one every `REFILL_MS`. */
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
