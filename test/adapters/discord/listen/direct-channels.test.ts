import { describe, expect, test } from "vitest";
import { createDirects } from "../../../../adapters/discord/listen/direct-channels.ts";

function store(kept: readonly string[] = []) {
  const written: Array<readonly string[]> = [];
  return { written, read: async () => kept, write: async (ids: readonly string[]) => void written.push(ids) };
}

describe("direct conversations", () => {
  test("are kept when they are new, newest first, a hundred at most", async () => {
    const kept = store(Array.from({ length: 100 }, (_, index) => String(index)));
    const directs = createDirects(kept);
    directs.note("5");
    directs.note("new");
    expect((await directs.list()).slice(0, 2)).toEqual(["new", "0"]);
    expect(kept.written).toHaveLength(1);
    expect(kept.written[0]).toHaveLength(100);
  });

  test("live in memory without a store", async () => {
    const directs = createDirects(undefined);
    directs.note("1");
    expect(await directs.list()).toEqual(["1"]);
  });

  test("are read again after the store failed", async () => {
    let fails = true;
    const directs = createDirects({
      read: async () => {
        if (fails) throw new Error("down");
        return ["1"];
      },
      write: async () => {},
    });
    directs.note("2");
    await expect(directs.list()).rejects.toThrow("down");
    fails = false;
    expect(await directs.list()).toEqual(["1"]);
  });
});
