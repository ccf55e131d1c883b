import { expect, test } from "vitest";
import { createThrottle } from "../../../../adapters/slack/api/optional-calls.ts";

function start() {
  let nowMs = 0;
  const throttle = createThrottle(() => nowMs);
  return { throttle, wait: (ms: number) => void (nowMs += ms) };
}

test("a throttle limits the calls per minute for each key separately", () => {
  const { throttle, wait } = start();
  const taken = Array.from({ length: 31 }, () => throttle.take("T1", 30));
  expect(taken.filter(Boolean)).toHaveLength(30);
  expect(throttle.take("T2", 30)).toBe(true);
  wait(60_000);
  expect(throttle.take("T1", 30)).toBe(true);
});

test("a paused throttle allows nothing until the pause is over", () => {
  const { throttle, wait } = start();
  throttle.pause("T1", 5_000);
  expect(throttle.take("T1", 30)).toBe(false);
  wait(5_000);
  expect(throttle.take("T1", 30)).toBe(true);
});
