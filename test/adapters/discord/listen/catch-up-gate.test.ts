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

describe("what waits for what was missed before it", () => {
  test("waits for nothing where no session begins", () => {
    const { take, done } = setUp();
    take("a", "one");
    expect(done).toEqual(["one"]);
  });

  test("goes on in its order when its channel was read, and at once where none is read", () => {
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

  test("waits no longer than for a while", async () => {
    const { gate, take, done, over } = setUp(10);
    gate.begin();
    take("a", "last");
    await over;
    expect(done).toEqual(["last"]);
  });
});
