import type { Clock } from "./clock.ts";

const DISCORD_EPOCH_MS = 1_420_070_400_000n;

/** Creates unique ids like Discord's. Their high bits are the milliseconds, so they sort by time. */
export function createSnowflakes(clock: Clock): () => string {
  let last = 0n;
  return () => {
    const first = (BigInt(Math.floor(clock.now())) - DISCORD_EPOCH_MS) << 22n;
    last = first > last ? first : last + 1n;
    return last.toString();
  };
}
