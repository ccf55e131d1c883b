import { describe, expect, test } from "vitest";
import { toTurnId } from "../../src/port/ids.ts";
import { startEngine } from "../support/engine.ts";
import { action, command, message } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";

const LINE = "a line of the long answer\n\n";

/** An answer that was cut off, and the press that lets it go on. */
async function cutOff(text: string, platform = fakePlatform(), rest = "the rest") {
  const engine = startEngine({ platform, scripts: [[text, { finish: "length" }], [rest]] });
  const question = message("Tell me everything");
  await engine.accept(question);
  await engine.idle();
  const before = platform.channel.map(({ draft }) => draft);
  async function goOn(): Promise<void> {
    await engine.accept(action("continue", toTurnId(question.key)));
    await engine.idle();
  }
  return { ...engine, question, before, goOn };
}

describe("a cut answer that goes on", () => {
  test("loses its button and the sentence beside it before the rest begins", async () => {
    const { before, goOn, channel, calls } = await cutOff("The first half");
    expect(before).toMatchObject([{ markdown: expect.stringContaining("Press Continue"), buttons: [{}] }]);
    const made = calls.length;
    await goOn();
    expect(channel.map(({ draft }) => [draft.markdown, draft.buttons])).toEqual([
      ["The first half", []],
      ["the rest", []],
    ]);
    expect(calls.slice(made, made + 2)).toEqual(["edit", "post"]);
  });

  test("keeps its text whole, however its messages were cut", async () => {
    const words = (shown: string) => shown.replace(/\s+/g, " ").trim();
    for (const extra of [0, 1, 2, 40, 80, 120]) {
      const text = LINE.repeat(14) + "x".repeat(extra);
      const platform = fakePlatform({ maxLength: 200 });
      const { goOn, texts, violations } = await cutOff(text, platform, "REST");
      await goOn();
      expect(words(texts().join(" "))).toBe(words(`${text} REST`));
      expect(violations).toEqual([]);
    }
  });

  test("keeps its text whole where more was shown than is kept of it", async () => {
    const words = Array.from({ length: 120 }, (_, index) => `word${index}`).join(" ");
    for (const length of [60, 150, 400]) {
      const platform = fakePlatform({ maxLength: 400 });
      const engine = startEngine({
        platform,
        scripts: [[{ reasoning: "hm ".repeat(length / 3) }, words, { finish: "length" }], ["REST"]],
      });
      await engine.accept(command("model", "--thinking shown"));
      await engine.idle();
      platform.channel.splice(0);
      const question = message("Tell me everything");
      await engine.accept(question);
      await engine.idle();
      expect(engine.texts()[0]).toContain("Thought for");
      await engine.accept(action("continue", toTurnId(question.key)));
      await engine.idle();
      const shown = engine.texts().join(" ");
      expect(words.split(" ").filter((word) => !shown.split(/\s+/).includes(word))).toEqual([]);
      expect(shown.match(/word77\b/g)).toHaveLength(1);
    }
  });

  test("loses a message that held nothing but the closing", async () => {
    const platform = fakePlatform({ maxLength: 200 });
    const text = "word ".repeat(30).trim();
    const { before, goOn, texts } = await cutOff(text, platform);
    expect(before).toHaveLength(2);
    await goOn();
    expect(texts()).toEqual([text, "the rest"]);
  });

  test("takes back what the closing had pushed into a message of its own", async () => {
    const platform = fakePlatform({ maxLength: 200 });
    const text = `${"word ".repeat(25).trim()}\n\n## A heading`;
    const { before, goOn, texts } = await cutOff(text, platform);
    expect(before[1]?.markdown).toMatch(/^## A heading/);
    await goOn();
    expect(texts()).toEqual([text, "the rest"]);
  });

  test("keeps its file and what says that it is there", async () => {
    const platform = fakePlatform({ maxLength: 200, maxMessages: 2 });
    const { goOn, channel, texts } = await cutOff(LINE.repeat(30), platform);
    await goOn();
    expect(channel.map(({ files }) => files.length)).toEqual([0, 0, 0, 1, 0]);
    expect(texts()[2]).toBe("_The whole answer is in the attached file._");
  });

  test("is left as it stands where what it says is kept nowhere else", async () => {
    const { goOn, history, question, texts } = await cutOff("The first half");
    const [standing] = texts();
    await history.remove(toTurnId(question.key));
    await goOn();
    expect(texts()).toEqual([standing, "the rest"]);
  });

  test("goes on also where the platform does not take the edit", async () => {
    const platform = fakePlatform();
    const { goOn, texts } = await cutOff("The first half", platform);
    platform.setTrouble((call) => (call === "edit" ? { kind: "forbidden" } : undefined));
    await goOn();
    expect(texts()).toEqual([expect.stringMatching(/^The first half/), "the rest"]);
  });
});
