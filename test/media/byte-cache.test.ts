import { describe, expect, test } from "vitest";
import { createByteCache } from "../../src/media/byte-cache.ts";

function setUp(maxBytes = 10) {
  let now = 0;
  const cache = createByteCache<string>(maxBytes, () => now);
  return { ...cache, advance: (ms: number) => (now += ms) };
}

describe("createByteCache", () => {
  test("the byte cache drops the oldest value to make room for a new one", () => {
    const { get, set } = setUp();
    set("a", "A", 5, 100);
    set("b", "B", 5, 100);
    set("c", "C", 4, 100);
    expect([get("a"), get("b"), get("c")]).toEqual([undefined, "B", "C"]);
  });

  test("the byte cache drops expired values before others", () => {
    const { get, set, advance } = setUp();
    set("long", "L", 5, 100);
    set("short", "S", 5, 10);
    advance(10);
    set("next", "N", 5, 100);
    expect([get("long"), get("next")]).toEqual(["L", "N"]);
  });

  test("the byte cache counts a replaced value once", () => {
    const { get, set } = setUp();
    for (const value of ["A", "B", "C"]) set("a", value, 5, 100);
    set("b", "B", 5, 100);
    expect([get("a"), get("b")]).toEqual(["C", "B"]);
  });

  test("the byte cache ignores a value larger than itself, and keeps the others", () => {
    const { get, set } = setUp();
    set("a", "A", 5, 100);
    set("huge", "H", 11, 100);
    expect([get("a"), get("huge")]).toEqual(["A", undefined]);
  });
});
