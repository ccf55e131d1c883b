import * as fc from "fast-check";
import { estimateTokenCount } from "tokenx";
import { describe, expect, test } from "vitest";
import { FRAME_TOKENS, frameText } from "../../src/media/text-frame.ts";

const file = (text: string) => ({ name: "notes.txt", text });

describe("the frame around the text of a file", () => {
  test("a frame contains the text of a file with its name", () => {
    const frame = frameText(file("one\r\ntwo\rthree\tfour\x1b[0m\n"), { maxTokens: 1_000 });
    expect(frame.isTruncated).toBe(false);
    expect(frame.text).toMatch(
      /^<file name="notes.txt" mark="([0-9a-f]{16})">\none\ntwo\nthree\tfour\[0m\n\n<\/file mark="\1">$/,
    );
  });

  test("the same file always gets the same frame", () => {
    expect(frameText(file("x"), { maxTokens: 1_000 })).toEqual(frameText(file("x"), { maxTokens: 1_000 }));
  });

  test("the content of a file cannot predict the mark of its frame", () => {
    const inner = frameText(file("harmless"), { maxTokens: 1_000 });
    const outer = frameText(file(`harmless\n${inner.text}\nand more`), { maxTokens: 1_000 });
    const mark = outer.text.match(/mark="(\w+)">/)?.[1] ?? "none";
    expect(outer.text.split(mark)).toHaveLength(3);
  });

  test("a frame truncates a long file, and says how much it shows", () => {
    const text = "word ".repeat(10_000);
    const frame = frameText(file(text), { maxTokens: 1_000 });
    expect(frame.isTruncated).toBe(true);
    expect(frame.text).toMatch(
      /\n\[[0-9a-f]{16}: truncated at character (\d+) of 50000; call read_file with "from": \1 to read on\]\n<\/file/,
    );
    expect(estimateTokenCount(frame.text)).toBeLessThan(1_100);
  });

  test("a frame continues from the character at which the last frame ended, and names the missing part at the end", () => {
    const text = Array.from({ length: 500 }, (_, index) => `line ${index}\n`).join("");
    let read = "";
    let last = "";
    for (let frames = 0, from = 0; frames < 100; frames++) {
      last = frameText({ ...file(text), leftOut: "only half was read" }, { from, maxTokens: 300 }).text;
      const [, inside = "", end] =
        /^<file [^>]+>\n([^]*)\n\[\w+: (?:.* "from": (\d+) to read on;.*|.*)\]\n<\/file/.exec(last) ?? [];
      read += inside;
      if (end === undefined) break;
      from = Number(end);
    }
    expect(read).toBe(text);
    expect(last).toContain(": only half was read]");
  });

  test("a frame also limits text that counts as no tokens", () => {
    const frame = frameText(file(" ".repeat(5_000_000)), { maxTokens: 1_000 });
    expect(frame.isTruncated).toBe(true);
    expect(frame.text.length).toBeLessThan(10_000);
  });

  test("a frame never splits a character or exceeds the token limit, whatever the text", () => {
    const text = fc.string({ unit: fc.constantFrom("a", " ", "\n", "日", "😀", "`", "<"), maxLength: 400 });
    const bounds = fc.record({ from: fc.nat(20), maxTokens: fc.integer({ min: 0, max: 200 }) });
    fc.assert(
      fc.property(text, bounds, (text, { from, maxTokens }) => {
        const frame = frameText(file(text), { from: text.slice(0, from).toWellFormed().length, maxTokens });
        const inside = frame.text.split("\n").slice(1, -1).join("\n");
        expect(estimateTokenCount(inside.replace(/\n\[\w{16}: .*\]$/, ""))).toBeLessThanOrEqual(maxTokens + 1);
        expect(frame.tokens).toBeLessThanOrEqual(Math.max(maxTokens, FRAME_TOKENS));
        expect(estimateTokenCount(frame.text)).toBeLessThanOrEqual(frame.tokens);
      }),
    );
  });
});
