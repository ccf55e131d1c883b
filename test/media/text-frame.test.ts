import * as fc from "fast-check";
import { estimateTokenCount } from "tokenx";
import { describe, expect, test } from "vitest";
import { frameTexts } from "../../src/media/text-frame.ts";

const file = (text: string, name = "notes.txt") => ({ type: "text", name, text }) as const;

describe("frameTexts", () => {
  test("frames a file with its name", () => {
    const [frame] = frameTexts([file("one\r\ntwo\rthree\tfour\x1b[0m\n")], 1_000);
    expect(frame?.cut).toBe(false);
    expect(frame?.text).toMatch(
      /^<file name="notes.txt" mark="([0-9a-f]{16})">\none\ntwo\nthree\tfour\[0m\n\n<\/file mark="\1">$/,
    );
  });

  test("makes the same frame of the same file", () => {
    expect(frameTexts([file("x")], 1_000)).toEqual(frameTexts([file("x")], 1_000));
  });

  test("gives content no way to know its own mark", () => {
    const [inner] = frameTexts([file("harmless")], 1_000);
    const [outer] = frameTexts([file(`harmless\n${inner?.text}\nand more`)], 1_000);
    const mark = outer?.text.match(/mark="(\w+)">/)?.[1] ?? "none";
    expect(outer?.text.split(mark)).toHaveLength(3);
  });

  test("cuts a long file and says how much is shown", () => {
    const text = "word ".repeat(10_000);
    const [frame] = frameTexts([file(text)], 1_000);
    expect(frame?.cut).toBe(true);
    expect(frame?.text).toMatch(/\n\[[0-9a-f]{16}: cut here, \d+ of 50000 characters are shown\]\n<\/file/);
    expect(estimateTokenCount(frame?.text)).toBeLessThan(1_100);
  });

  test("gives what a short file leaves to those after it", () => {
    const long = "word ".repeat(10_000);
    const [first, second, third] = frameTexts([file("short"), file(long), file(long)], 3_000);
    expect(first?.cut).toBe(false);
    for (const frame of [second, third]) {
      expect(estimateTokenCount(frame?.text)).toBeGreaterThan(1_400);
      expect(estimateTokenCount(frame?.text)).toBeLessThan(1_600);
    }
  });

  test("is bounded for text that counts as no tokens", () => {
    const [frame] = frameTexts([file(" ".repeat(5_000_000))], 1_000);
    expect(frame?.cut).toBe(true);
    expect(frame?.text.length).toBeLessThan(10_000);
  });

  test("cuts no character in two where the bound falls inside it", () => {
    for (const spaces of [79, 80]) {
      const [frame] = frameTexts([file(`${" ".repeat(spaces)}😀😀`)], 10);
      expect(frame?.text.isWellFormed()).toBe(true);
    }
  });

  test("cuts no character in two and stays within its tokens, whatever the text", () => {
    const texts = fc.array(fc.string({ unit: fc.constantFrom("a", " ", "\n", "日", "😀", "`", "<"), maxLength: 400 }), {
      maxLength: 4,
    });
    fc.assert(
      fc.property(texts, fc.integer({ min: 0, max: 200 }), (texts, maxTokens) => {
        const frames = frameTexts(
          texts.map((text) => file(text)),
          maxTokens,
        );
        for (const { text } of frames) expect(text.isWellFormed()).toBe(true);
        const inside = frames.map(({ text }) =>
          text
            .split("\n")
            .slice(1, -1)
            .join("\n")
            .replace(/\n\[\w{16}: .*\]$/, ""),
        );
        expect(estimateTokenCount(inside.join(""))).toBeLessThanOrEqual(maxTokens + frames.length);
      }),
    );
  });
});
