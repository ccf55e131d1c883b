import { describe, expect, test } from "vitest";
import { createCatchUpGate } from "../../../../adapters/discord/listen/catch-up-gate.ts";

function setUp(longestMs?: number) {
  const done: string[] = [];
  const over = Promise.withResolvers<void>();
  const gate = createCatchUpGate(longestMs);
  const take = (id: string, word: string, isDirect = false) =>
    gate.take({ id, isDirect }, () => {
      done.push(word);
      if (word === "last") over.resolve();
    });
  return { gate, take, done, over: over.promise };
}

describe("events that wait for missed messages before them", () => {
  test("run at once where no session begins", () => {
    const { take, done } = setUp();
    take("a", "one");
    expect(done).toEqual(["one"]);
  });

  test("run in order when their channel was read, and at once where it is not read", () => {
    const { gate, take, done } = setUp();
    gate.begin();
    take("a", "one");
    take("b", "two");
    take("dm", "three", true);
    expect(done).toEqual([]);
    gate.expect(false, ["a"]);
    expect(done).toEqual(["two"]);
    take("a", "four");
    gate.release("a");
    take("a", "five");
    expect(done).toEqual(["two", "one", "four", "five"]);
    gate.expect(true, []);
    expect(done).toEqual(["two", "one", "four", "five", "three"]);
  });

  test("run after the longest wait in any case", async () => {
    const { gate, take, done, over } = setUp(10);
    gate.begin();
    take("a", "last");
    await over;
    expect(done).toEqual(["last"]);
  });
});
