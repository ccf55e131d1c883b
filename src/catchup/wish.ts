import { readPast } from "./past.ts";

/** The places and the time that a person asks to catch up on. */
export interface Wish {
  which: "here" | "all";
  /** Unix milliseconds; absent: since their own last message. */
  since?: number;
}

const WORDS = /^(?:(all)\b)?\s*(?:since\s+(.+))?$/is;

/** Undefined if the words are no such wish, or name no time in the past. `now` is in Unix milliseconds. */
export function readWish(words: string, zone: string, now: number): Wish | undefined {
  const [whole, all, time] = WORDS.exec(words.trim()) ?? [];
  if (whole === undefined) return undefined;
  const which = all === undefined ? "here" : "all";
  if (time === undefined) return { which };
  const since = readPast(time.trim(), zone, now);
  return since === undefined ? undefined : { which, since };
}
