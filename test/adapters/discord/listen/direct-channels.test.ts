import { describe, expect, test } from "vitest";
import { createDirectChannels } from "../../../../adapters/discord/listen/direct-channels.ts";

function store(kept: readonly string[] = []) {
  const written: Array<readonly string[]> = [];
  return { written, read: async () => kept, write: async (ids: readonly string[]) => void written.push(ids) };
}

describe("direct conversations", () => {
  test("direct channels are kept when they are new, newest first, a hundred at most", async () => {
    const kept = store(Array.from({ length: 100 }, (_, index) => String(index)));
    const directChannels = createDirectChannels(kept);
    directChannels.note("5");
    directChannels.note("new");
    expect((await directChannels.list()).slice(0, 2)).toEqual(["new", "0"]);
    expect(kept.written).toHaveLength(1);
    expect(kept.written[0]).toHaveLength(100);
  });

  test("direct channels live in memory without a store", async () => {
    const directChannels = createDirectChannels(undefined);
    directChannels.note("1");
    expect(await directChannels.list()).toEqual(["1"]);
  });

  test("direct channels are read again after the store failed", async () => {
    let fails = true;
    const directChannels = createDirectChannels({
      read: async () => {
        if (fails) throw new Error("down");
        return ["1"];
      },
      write: async () => {},
    });
    directChannels.note("2");
    await expect(directChannels.list()).rejects.toThrow("down");
    fails = false;
    expect(await directChannels.list()).toEqual(["1"]);
  });
});
