import { describe, expect, test } from "vitest";
import { createSharedLookups } from "../../src/concurrency/shared-lookups.ts";

describe("lookups shared between questions", () => {
  test("questions with the same signal share a lookup, and a question with another signal looks again", async () => {
    const shared = createSharedLookups();
    let count = 0;
    const find = async () => ++count;
    const [one, other] = [new AbortController().signal, new AbortController().signal];
    expect(await shared(one, "a", find)).toBe(1);
    expect(await shared(one, "a", find)).toBe(1);
    expect(await shared(one, "b", find)).toBe(2);
    expect(await shared(other, "a", find)).toBe(3);
  });
});
