import { expect, test } from "vitest";
import { describeAmount } from "../../src/quota/wording.ts";

test("the bot never shows a small amount of money as zero", () => {
  expect([0, 1, 240, 4_200_000, 20e9].map((billionths) => describeAmount("money", billionths, "USD"))).toEqual([
    "0.00 USD",
    "0.000000001 USD",
    "0.00000024 USD",
    "0.0042 USD",
    "20.00 USD",
  ]);
});
