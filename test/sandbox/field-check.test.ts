import { describe, expect, test } from "vitest";
import { z } from "zod";
import { checkFields } from "../../src/sandbox/field-check.ts";

const table = z.strictObject({
  size: z.number().min(1),
  words: z.union([z.string(), z.array(z.strictObject({ text: z.string() }))]).optional(),
  kind: z.enum(["a", "b"]).optional(),
  names: z.array(z.string().min(1)).min(1).max(2).optional(),
});

const messageFor = (body: unknown) => {
  try {
    checkFields(table, body);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
};

describe("checkFields", () => {
  test.each([
    [{}, "size is required and was not sent."],
    [{ size: "2" }, "size must be a number, not a string."],
    [{ size: null }, "size must be a number, not null."],
    [{ size: 0 }, "size must be at least 1."],
    [JSON.parse('{"size":1e999}'), "size must be a number, not one beyond all bounds."],
    [{ size: 2, names: [] }, "names must not be empty."],
    [{ size: 2, names: [""] }, "names[0] must not be empty."],
    [{ size: 2, names: ["a", "b", "c"] }, "names must have at most 2 entries."],
    [{ size: 2, words: 7 }, "words must be a string or an array, not a number."],
    [{ size: 2, words: [{ text: [] }] }, "words[0].text must be a string, not an array."],
    [{ size: 2, words: [{ text: "", more: 1 }] }, "words[0].more is not a field of this request."],
    [{ size: 2, kind: "c" }, 'kind must be "a" or "b".'],
  ])("checkFields explains the error in %j", (body, message) => expect(messageFor(body)).toBe(message));
});
