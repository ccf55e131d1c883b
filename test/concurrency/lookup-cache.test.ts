import { describe, expect, test } from "vitest";
import { createLookupCache } from "../../src/concurrency/lookup-cache.ts";

function startCache() {
  let nowMs = 0;
  const answers = createLookupCache({ freshMs: 3_600_000, maxEntries: 10_000, now: () => nowMs });
  let found = 0;
  const find = async (value: string | undefined) => {
    found += 1;
    return value;
  };
  return { answers, find, found: () => found, wait: (ms: number) => void (nowMs += ms) };
}

describe("the lookup cache", () => {
  test("the lookup cache reuses a found value while it is fresh, and a miss for a minute", async () => {
    const { answers, find, found, wait } = startCache();
    expect(await answers.get("a", () => find("Ada"))).toBe("Ada");
    expect(await answers.get("b", () => find(undefined))).toBeUndefined();
    wait(59_000);
    expect(await answers.get("a", () => find("other"))).toBe("Ada");
    expect(await answers.get("b", () => find("other"))).toBeUndefined();
    expect(found()).toBe(2);
    wait(2_000);
    expect(await answers.get("b", () => find("Bob"))).toBe("Bob");
    wait(3_600_000);
    expect(await answers.get("a", () => find("Ada L."))).toBe("Ada L.");
  });

  test("the lookup cache forgets the oldest value if there are too many", async () => {
    const { answers, find, found } = startCache();
    await answers.get("first", () => find("first"));
    for (let count = 0; count < 10_000; count++) await answers.get(`${count}`, () => find("x"));
    const before = found();
    await answers.get("9999", () => find("x"));
    await answers.get("first", () => find("first"));
    expect(found()).toBe(before + 1);
  });
});
