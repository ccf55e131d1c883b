import { describe, expect, test } from "vitest";
import { type LoopPlatform, runFaultLoop } from "./support/fault-loop.ts";

/** A few of what `npm run bench -- turns` runs, with the same seeds. */
const TURNS = 30;

describe.concurrent("a platform, an upstream, people and a process that do their worst", () => {
  test.each<LoopPlatform>(["discord", "slack"])("leave every question on %s with one ending", async (platform) => {
    const { turns, counts, failed } = await runFaultLoop({ platform, turns: TURNS, seed: 1, sideBySide: 12 });
    expect(failed.map(({ seed, complaints }) => ({ seed, complaints }))).toEqual([]);
    expect(counts).toEqual({ lost: 0, doubled: 0, stuck: 0, wrong: 0, "taken back": 0, "acted twice": 0 });
    expect(turns).toBeGreaterThanOrEqual(TURNS);
  });
});
