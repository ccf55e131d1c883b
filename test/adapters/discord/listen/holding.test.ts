import { describe, expect, test } from "vitest";
import { createHolding } from "../../../../adapters/discord/listen/holding.ts";

function setUp(longestMs?: number) {
  const done: string[] = [];
  const over = Promise.withResolvers<void>();
  const holding = createHolding(longestMs);
  const take = (id: string, word: string, isDirect = false) =>
    holding.take({ id, isDirect }, () => {
      done.push(word);
      if (word === "last") over.resolve();
    });
  return { holding, take, done, over: over.promise };
}

describe("what waits for what was missed before it", () => {
  test("waits for nothing where no session begins", () => {
    const { take, done } = setUp();
    take("a", "one");
    expect(done).toEqual(["one"]);
  });

  test("goes on in its order when its channel was read, and at once where none is read", () => {
    const { holding, take, done } = setUp();
    holding.begin();
    take("a", "one");
    take("b", "two");
    take("dm", "three", true);
    expect(done).toEqual([]);
    holding.expect(false, ["a"]);
    expect(done).toEqual(["two"]);
    take("a", "four");
    holding.release("a");
    take("a", "five");
    expect(done).toEqual(["two", "one", "four", "five"]);
    holding.expect(true, []);
    expect(done).toEqual(["two", "one", "four", "five", "three"]);
  });

  test("waits no longer than for a while", async () => {
    const { holding, take, done, over } = setUp(10);
    holding.begin();
    take("a", "last");
    await over;
    expect(done).toEqual(["last"]);
  });
});
