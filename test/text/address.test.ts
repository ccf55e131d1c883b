import { expect, test } from "vitest";
import { withoutAddress } from "../../src/text/address.ts";

const BOT = "<@BOT>";

test.each([
  ["<@BOT> tea?", "tea?"],
  ["<@BOT>, <@BOT>: tea?", " tea?"],
  ["tea? <@BOT>", "tea?"],
  ["tea?  <@BOT> <@BOT> ", "tea?"],
  ["is <@BOT> a name?", "is <@BOT> a name?"],
])("the bot removes its mention from both ends of %j", (text, words) => expect(withoutAddress(text, BOT)).toBe(words));

test("the bot removes mentions from a long run of blanks in linear time", { timeout: 20_000 }, () => {
  const text = `hi${" ".repeat(400_000)}x`;
  expect(withoutAddress(text, BOT)).toBe(text);
});
