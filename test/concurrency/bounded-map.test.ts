import { describe, expect, test } from "vitest";
import { BoundedMap } from "../../src/concurrency/bounded-map.ts";

describe("BoundedMap", () => {
  test("a bounded map forgets the entry that was set the longest ago", () => {
    const map = new BoundedMap<string, number>(2).set("a", 1).set("b", 2).set("c", 3);
    expect([...map]).toEqual([
      ["b", 2],
      ["c", 3],
    ]);
  });

  test("a bounded map treats an entry that is set again as the newest", () => {
    const map = new BoundedMap<string, number>(2).set("a", 1).set("b", 2).set("a", 3).set("c", 4);
    expect([...map.keys()]).toEqual(["a", "c"]);
  });

  test("a bounded map does not renew an entry that is only read", () => {
    const map = new BoundedMap<string, number>(2).set("a", 1).set("b", 2);
    expect(map.get("a")).toBe(1);
    expect(map.set("c", 3).has("a")).toBe(false);
  });
});
