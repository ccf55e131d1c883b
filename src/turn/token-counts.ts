import { hash } from "node:crypto";
import { estimateTokenCount } from "tokenx";
import { BoundedMap } from "../concurrency/bounded-map.ts";

/** Shorter texts are counted in less time than it takes to look them up. */
const LONG_CHARS = 1_000;
const MAX_COUNTS = 5_000;

/** By digests, so that nothing of what people said stays in memory. */
const counts = new BoundedMap<string, number>(MAX_COUNTS);

/** Estimates the tokens of a text. Long counts are kept: each takes milliseconds and comes up in every round. */
export function estimateTokens(text: string): number {
  if (text.length < LONG_CHARS) return estimateTokenCount(text);
  const digest = hash("sha256", text, "base64");
  const known = counts.get(digest);
  if (known !== undefined) return known;
  const count = estimateTokenCount(text);
  counts.set(digest, count);
  return count;
}
