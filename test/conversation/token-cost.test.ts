import * as fc from "fast-check";
import { estimateTokenCount } from "tokenx";
import { describe, expect, test } from "vitest";
import { countTokens, shortenToFit } from "../../src/conversation/token-cost.ts";
import type { HistoryEntry } from "../../src/history/record.ts";
import { answered, said, textOf } from "../support/history-contract.ts";

const perCharacter = (text: string) => text.length;
const file = { platform: "test", id: "f", name: "f.png", sizeBytes: 1 };
const image = { type: "image_url" as const, image_url: { url: "https://example.com/a.png" } };

describe("countTokens", () => {
  test("countTokens counts the text, tool calls with their arguments and results, and names twice", () => {
    const plain = countTokens(said("1", "", { platform: "t", id: "a", name: "" }), perCharacter);
    expect(countTokens(said("1", "12345", { platform: "t", id: "a", name: "Ada" }), perCharacter)).toBe(plain + 11);
    const answer = answered("2", "text");
    const [asking] = answer.messages;
    expect(countTokens(answer, perCharacter)).toBeGreaterThan(
      "clock".length + '{"zone":"UTC"}'.length + "12:00".length + "text".length,
    );
    expect(countTokens({ ...answer, messages: asking === undefined ? [] : [asking] }, perCharacter)).toBeGreaterThan(
      20,
    );
  });

  test("countTokens counts 800 for an image, whatever its address is, and nothing for an attachment", () => {
    const bare = said("1", "x");
    expect(countTokens({ ...bare, attachments: [file, file] }, perCharacter)).toBe(countTokens(bare, perCharacter));
    const withImage: HistoryEntry = {
      ...bare,
      messages: [{ role: "user", content: [{ type: "text", text: "x" }, image] }],
    };
    expect(countTokens(withImage, perCharacter)).toBe(countTokens(bare, perCharacter) + 800);
  });
});

describe("shortenToFit", () => {
  test("shortenToFit returns an entry that fits unchanged", () => {
    const entry = said("1", "short");
    expect(shortenToFit(entry, 1_000, perCharacter)).toBe(entry);
  });

  test("shortenToFit shortens the text of a message with images and keeps the images", () => {
    const entry: HistoryEntry = {
      ...said("1", ""),
      messages: [{ role: "user", content: [image, { type: "text", text: "x".repeat(5_000) }], name: "Ada" }],
    };
    const cut = shortenToFit(entry, 1_000, perCharacter);
    expect(cut.messages[0]).toMatchObject({ name: "Ada", content: [{ type: "text" }, image] });
    expect(countTokens(cut, perCharacter)).toBeLessThanOrEqual(1_000);
  });

  test("shortenToFit says how many characters it left out, never splits a surrogate pair, and uses its room", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 600 }),
        fc.integer({ min: 60, max: 500 }),
        (text, maxTokens) => {
          const cut = textOf(shortenToFit(said("1", text), maxTokens, perCharacter));
          expect(cut.isWellFormed()).toBe(text.isWellFormed());
          const [, head = "", left, tail = ""] = /^(.*)\n\[… (\d+) characters left out …\]\n(.*)$/s.exec(cut) ?? [];
          if (cut === text) return;
          expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
          expect(head.length + Number(left) + tail.length).toBe(text.length);
          expect(countTokens(said("1", cut), perCharacter)).toBeLessThanOrEqual(maxTokens);
          expect(countTokens(said("1", cut), perCharacter)).toBeGreaterThan(maxTokens - 8);
        },
      ),
    );
  });

  test("shortenToFit measures a huge text only once, not once per try", () => {
    let measured = 0;
    const counting = (text: string) => {
      measured += text.length;
      return text.length;
    };
    shortenToFit(said("1", "x".repeat(1_000_000)), 1_000, counting);
    expect(measured).toBeLessThan(4_000_000);
  });

  test("shortenToFit finds out in few tries how much of a text fits", () => {
    let looks = 0;
    const counting = (text: string) => {
      looks += 1;
      return estimateTokenCount(text);
    };
    const text = `${"Lorem ipsum dolor sit amet, ".repeat(1_000)}${"漢字かな".repeat(2_000)}`;
    const cut = shortenToFit(said("1", text), 4_000, counting);
    expect(looks).toBeLessThan(15);
    expect(countTokens(cut, estimateTokenCount)).toBeLessThanOrEqual(4_000);
    expect(countTokens(cut, estimateTokenCount)).toBeGreaterThan(3_900);
  });
});
