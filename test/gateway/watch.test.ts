import { expect, test } from "vitest";
import { describeSeconds } from "../../src/gateway/watch.ts";

test("the watch reports a wait rounded up", () => {
  expect([0.4, 999, 1_000, 1_001, 90_000].map(describeSeconds)).toEqual(["1 ms", "999 ms", "1 s", "2 s", "90 s"]);
});
