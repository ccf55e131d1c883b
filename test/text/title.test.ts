import { expect, test } from "vitest";
import { toTitle } from "../../src/text/title.ts";

test.each([
  ["Hello", 90, "Hello"],
  ["  What\n is  *this*? https://example.com ", 90, "What is this?"],
  [
    "what does `read_file` do? _Say_ __init__ of my_tool__name",
    90,
    "what does read_file do? Say init of my_tool__name",
  ],
  ["# Is 2*3 **really** 6 in C#? *See* #general", 90, "Is 2*3 really 6 in C#? See general"],
  ["one two three four", 12, "one two…"],
  ["🙂🙂🙂🙂🙂🙂", 4, "🙂🙂🙂…"],
  ["https://example.com", 90, ""],
  ["___a__b*__ *c*", 90, "a__b c"],
])("the title of %j in %i characters is %j", (text, letters, title) => expect(toTitle(text, letters)).toBe(title));

test("a title of a long run of marks within a word takes linear time", { timeout: 20_000 }, () => {
  expect(toTitle(`a${"_*".repeat(50_000)}b`, 12)).toBe("a_*_*_*_*_*…");
});
