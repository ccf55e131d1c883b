import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Logger } from "pino";
import { BoundedMap } from "../concurrency/bounded-map.ts";

/** Wrong tries of one source that cost no time. */
const FREE_TRIES = 5;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** A source begins anew after this time without a wrong try. */
const FORGET_MS = 15 * 60_000;
/** Wrong tries of all unknown sources together: this many at once, then one a second. */
const BURST_TRIES = 60;
const REFILL_MS = 1_000;
/** Who was told to wait so often, and did, is looked at with a pace of its own. */
const PATIENT_WAITS = 3;
/** Strangers can fill the first map; only people who know the secret fill the second. */
const MAX_SOURCES = 10_000;
const MAX_TRUSTED = 1_000;
const MAX_WRONG = 4;

export interface TrySource {
  address: string;
  /** The id of a browser that was let in before, proved. */
  browser?: string | undefined;
}

export type Verdict = { kind: "right" } | { kind: "wrong" } | { kind: "wait"; waitMs: number };

/**
 * Compares what people give with a secret, the slower the more of it was wrong. Logs each wrong try without its text,
 * and how many were not looked at before it.
 */
export interface SecretGuard {
  /** While a source has to wait, what it gives is not looked at, right or wrong. */
  judge(given: string, source: TrySource): Verdict;
}

export interface SecretGuardOptions {
  secret: string;
  /** Names the secret in the log. */
  name: string;
  log: Logger;
  /** Milliseconds of a clock that never jumps. */
  now(): number;
}

interface Failures {
  count: number;
  at: number;
  until: number;
  /** Digests of the latest wrong ones: the same once more is no new guess, but a page that is still open. */
  wrong: string[];
}

/**
 * After a few wrong tries an address pauses, for a minute at most. All of them together have a pace of their own, for
 * guesses from many addresses; it does not hold for an address that was right before, and whoever waits as told shares
 * another pace with those who do. A browser that was let in before is counted by itself, since behind a proxy everybody
 * may have one address. So people who know the secret get in at once from a known place, and after the pause from any
 * other, whatever others do.
 */
export function createSecretGuard({ secret, name, log, now }: SecretGuardOptions): SecretGuard {
  const key = randomBytes(32);
  const digest = (text: string) => createHmac("sha256", key).update(text).digest();
  const expected = digest(secret);
  const failures = new Map<string, Failures>();
  const trusted = new Set<string>();
  const [unknown, patient] = [createPace(BURST_TRIES, now), createPace(1, now)];
  const waits = new BoundedMap<string, { count: number; until: number }>(MAX_SOURCES);
  /** Tries of all sources that were not looked at, since the latest line of the log. */
  let refused = 0;

  /** The pace by which an address that nobody knows is looked at. */
  function paceOf(address: string): Pace {
    const { count = 0, until = 0 } = waits.get(address) ?? {};
    return unknown.waitMs() > 0 && count >= PATIENT_WAITS && now() >= until ? patient : unknown;
  }

  function noteWait(address: string, waitMs: number): void {
    const { count = 0, until = 0 } = waits.get(address) ?? {};
    // Asking again before the time that was told is no waiting.
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
    // Refused tries have no line of their own: whoever makes thousands would fill the log.
    log.warn({ source, tries: entry.count, refusedBefore: refused, pauseMs }, `A wrong ${name} was given`);
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
  /** Milliseconds until the next try; 0: now. */
  waitMs(): number;
  take(): void;
}

/** So many tries at once, then one each `REFILL_MS`. */
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
