import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { toTurnId } from "../../src/port/ids.ts";
import { defineTool } from "../../src/tools/tool.ts";
import { type EngineOptions, startEngine } from "../support/engine.ts";
import { action, ada, ben, command, deleted, message } from "../support/events.ts";
import type { Step } from "../support/fake-gateway.ts";
import { fakePlatform } from "../support/fake-platform.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  schema: z.object({ where: z.string() }),
  timeoutMs: 60_000,
  run: async () => "rain",
  describeCall: () => "looking",
});
const CALL: Step = {
  tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "look", arguments: '{"where":"outside"}' } }],
};

function start({ maxLength = 2_000, ...options }: EngineOptions & { maxLength?: number } = {}) {
  const platform = fakePlatform({ maxLength });
  Object.assign(platform.sink, { supportsSecondThoughts: true });
  const engine = startEngine({ platform, ...options });
  return {
    ...engine,
    /** What somebody is told who presses the button under the answer to a question. */
    async explained(key: string, by: Parameters<typeof action>[2] = {}): Promise<string | undefined> {
      await engine.accept(action("explain", toTurnId(key), by));
      await engine.idle();
      return engine.texts().at(-1);
    },
  };
}

describe("the explanation of an answer", () => {
  test("is shown by a button: messages, model, tools with arguments and times, tokens", async () => {
    const { accept, idle, channel, explained } = start({ scripts: [["Hello."], [CALL], ["It rains."]], tools: [look] });
    await accept(message("I am Ada."));
    await idle();
    const question = message("The weather?");
    await accept(question);
    await idle();
    expect(channel[1]?.draft.buttons.map(({ label }) => label)).toContain("What did you see?");
    const told = (await explained(question.key)) ?? "";
    expect(told.split("\n")).toEqual([
      "**What I was given for this answer**",
      "- Model: `fake`",
      "- Persona: as configured",
      expect.stringMatching(/^- Tokens: \d+ read, \d+ written, estimated$/),
      "- Messages: 3",
      "  - `Ada`: `I am Ada.`",
      "  - I: `Hello.`",
      "  - `Ada`: `The weather?`",
      expect.stringMatching(
        /^- Tool: `look` with `\{"where":"outside"\}` at \d\d:\d\d:\d\d UTC, done after \d+\.\d s$/,
      ),
    ]);
  });

  test("names the persona and the options of its channel, and what was left out", async () => {
    const { accept, idle, explained } = start({ maxEntries: 2 });
    await accept(command("persona", "A pirate"));
    await accept(command("model", "--temperature 0.5"));
    for (const text of ["one", "two"]) {
      await accept(message(text));
      await idle();
    }
    const question = message("three");
    await accept(question);
    await idle();
    const told = await explained(question.key);
    expect(told).toMatch(/- Model: `fake`, with temperature 0\.5\n- Persona: of this channel, `A pirate`\n/);
    expect(told).toMatch(/- Left out: .+\n- Said about it: Earlier messages of this conversation were left out\.$/);
    await accept(command("persona", "A parrot"));
    await idle();
    expect(await explained(question.key)).toContain("of this channel, which was changed since");
  });

  test("is not stored as words: erased messages are missing from it", async () => {
    const { accept, idle, explained } = start();
    const secret = message("a secret of ben", { author: ben });
    await accept(secret);
    await idle();
    const question = message("Well?");
    await accept(question);
    await idle();
    expect(await explained(question.key)).toContain("a secret of ben");
    await accept(deleted(secret));
    const told = await explained(question.key);
    expect(told).not.toContain("secret");
    expect(told).toContain("1 that were erased since");
  });

  test("is shown only to people of its place", async () => {
    const { accept, idle, explained, texts } = start();
    const question = message("Hello");
    await accept(question);
    await idle();
    expect(await explained(question.key, { author: ben })).toContain("**What I was given");
    const elsewhere = action("explain", toTurnId(question.key), { author: ben });
    const reply = { ...elsewhere.reply, channelId: "another" };
    await accept({ ...elsewhere, reply });
    await idle();
    expect(texts().at(-1)).toBe("This belongs to another conversation, so nothing was done.");
    expect(await explained("never asked")).toMatch(/^This answer is too old/);
  });

  test("fits into one message, the oldest messages left out first", async () => {
    const { accept, idle, explained, violations } = start({ maxLength: 600 });
    for (let at = 0; at < 12; at++) {
      await accept(message(`question ${at} ${"x".repeat(60)}`));
      await idle();
    }
    const question = message("the last one");
    await accept(question);
    await idle();
    const told = await explained(question.key);
    expect(told).toMatch(/- Messages: 25, the newest \d here/);
    expect(told).toContain("the last one");
    expect(told).not.toContain("question 0 ");
    expect(violations).toEqual([]);
  });

  test("is exported to the person who asked, and erased with everything else", async () => {
    const database = new DatabaseSync(":memory:");
    const { accept, idle, records } = start({ database });
    const question = message("my secret");
    await accept(question);
    await idle();
    const turnId = toTurnId(question.key);
    expect(await records.readSights("test", ada.id)).toMatchObject([
      { turnId, given: { shown: [question.messageId] } },
    ]);
    await accept(command("forget", "me for good"));
    await idle();
    expect([await records.readSight(turnId), await records.readSights("test", ada.id)]).toEqual([undefined, []]);
  });
});
