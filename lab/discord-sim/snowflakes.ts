import type { Clock } from "./clock.ts";

const DISCORD_EPOCH_MS = 1_420_070_400_000n;

/** Makes ids as Discord does: the millisecond in the high bits, so they sort by time. Never the same one twice. */
export function createSnowflakes(clock: Clock): () => string {
  let last = 0n;
  return () => {
    const first = (BigInt(Math.floor(clock.now())) - DISCORD_EPOCH_MS) << 22n;
    last = first > last ? first : last + 1n;
    return last.toString();
  };
}
