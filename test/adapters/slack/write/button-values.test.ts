import { expect, test } from "vitest";
import { readButtonValue, toButtonValue } from "../../../../adapters/slack/write/button-values.ts";

test("a button's value says what it does and for which turn, whatever the turn is called", () => {
  const press = { action: "retry" as const, turnId: "slack:T:C:1.2:0\n" };
  expect(readButtonValue(toButtonValue(press))).toEqual(press);
});

test.each([undefined, 1, "", "retry", "retry:", "explode:t", ":t"])("%j is no button of ours", (value) => {
  expect(readButtonValue(value)).toBeUndefined();
});
