import { describe, expect, test } from "vitest";
import { createThinking } from "../../src/reply/thinking.ts";

function setUp() {
  const told: string[] = [];
  const clock = { ms: 0 };
  const thinking = createThinking({ onTell: (words) => void told.push(words), now: () => clock.ms });
  return { thinking, told, clock };
}

describe("the model's thoughts", () => {
  test("a reply announces thoughts at once and then every few seconds", () => {
    const { thinking, told, clock } = setUp();
    for (clock.ms = 0; clock.ms <= 12_000; clock.ms += 100) thinking.add("hm ");
    expect(told).toEqual(["thinking", "thinking, 5 s", "thinking, 10 s"]);
    clock.ms = 12_000;
    expect(thinking.describe()).toBe("thinking, 12 s");
    expect(thinking.pause()).toBe(true);
    expect([thinking.describe(), thinking.pause()]).toEqual(["", false]);
  });

  test("a reply quotes thoughts once, with only their own time", () => {
    const { thinking, clock } = setUp();
    thinking.add("First this.\n");
    clock.ms = 2_000;
    thinking.pause();
    clock.ms = 60_000;
    thinking.add("\nThen that. ");
    clock.ms = 61_000;
    expect(thinking.takeQuote(false)).toBe("> **Thought for 3 s**\n> First this.\n> \n> Then that.\n\n");
    expect(thinking.takeQuote(false)).toBe("");
  });

  test("a reply quotes long thoughts in part, and thoughts without words not at all", () => {
    const { thinking } = setUp();
    thinking.add(`a${"😀".repeat(5_000)}`);
    const quote = thinking.takeQuote(true);
    expect(quote).toMatch(/^> \[!thinking\]- Thought for 0 s\n> a😀+…\n\n$/u);
    expect(quote.length).toBeLessThan(1_100);
    thinking.add(" \n");
    expect(thinking.takeQuote(true)).toBe("");
  });

  test("a reply forgets thoughts when the bot asks the model again", () => {
    const { thinking, clock } = setUp();
    thinking.add("In vain.");
    clock.ms = 9_000;
    thinking.restart();
    thinking.add("Once more.");
    expect(thinking.describe()).toBe("thinking");
    expect(thinking.takeQuote(false)).toBe("> **Thought for 0 s**\n> Once more.\n\n");
  });
});
