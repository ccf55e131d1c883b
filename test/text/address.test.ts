import { expect, test } from "vitest";
import { withoutAddress } from "../../src/text/address.ts";

const BOT = "<@BOT>";

test.each([
  ["<@BOT> tea?", "tea?"],
  ["<@BOT>, <@BOT>: tea?", " tea?"],
  ["tea? <@BOT>", "tea?"],
  ["tea?  <@BOT> <@BOT> ", "tea?"],
  ["is <@BOT> a name?", "is <@BOT> a name?"],
])("the address is left out at the ends of %j", (text, words) => expect(withoutAddress(text, BOT)).toBe(words));

test("a long run of blanks costs no more than its length", { timeout: 20_000 }, () => {
  const text = `hi${" ".repeat(400_000)}x`;
  expect(withoutAddress(text, BOT)).toBe(text);
});
