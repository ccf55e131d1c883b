import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { type EngineOptions, startEngine } from "../../lab/support/engine.ts";
import { action, ada, ben, command, deleted, message } from "../../lab/support/events.ts";
import type { Step } from "../../lab/support/fake-gateway.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import type { Actor } from "../../src/port/catalogue.ts";
import { toTurnId } from "../../src/port/ids.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { toCall, toTool } from "../support/tool-calls.ts";

const look = toTool("look", async () => "rain");
const CALL: Step = toCall("look", { where: "outside" });

function start({ maxLength = 2_000, ...options }: EngineOptions & { maxLength?: number } = {}) {
  const platform = fakePlatform({ maxLength, traits: { secondThoughts: true } });
  const engine = startEngine({ platform, ...options });
  return {
    ...engine,
    /** Presses the button under a question's answer, and returns the explanation. */
    async explained(key: string, by: Parameters<typeof action>[2] = {}): Promise<string | undefined> {
      await engine.handle(action("explain", toTurnId(key), by));
      return engine.texts().at(-1);
    },
  };
}

describe("the explanation of an answer", () => {
  test("a button shows the explanation: messages, model, tools with arguments and times, tokens", async () => {
    const { handle, channel, explained } = start({ scripts: [["Hello."], [CALL], ["It rains."]], tools: [look] });
    await handle(message("I am Ada."));
    const question = await handle(message("The weather?"));
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

  test("the explanation names the channel's persona and options, and the messages that were left out", async () => {
    const { accept, handle, explained } = start({ maxEntries: 2 });
    await accept(command("persona", "A pirate"));
    await accept(command("model", "--temperature 0.5"));
    for (const text of ["one", "two"]) {
      await handle(message(text));
    }
    const question = await handle(message("three"));
    const told = await explained(question.key);
    expect(told).toMatch(/- Model: `fake`, with temperature 0\.5\n- Persona: of this channel, `A pirate`\n/);
    expect(told).toMatch(/- Left out: .+\n- Note: Earlier messages of this conversation were left out\.$/);
    await handle(command("persona", "A parrot"));
    expect(await explained(question.key)).toContain("of this channel, changed since");
  });

  test("the explanation does not store text: erased messages are missing from it", async () => {
    const { accept, handle, explained } = start();
    const secret = await handle(message("a secret of ben", { author: ben }));
    const question = await handle(message("Well?"));
    expect(await explained(question.key)).toContain("a secret of ben");
    await accept(deleted(secret));
    const told = await explained(question.key);
    expect(told).not.toContain("secret");
    expect(told).toContain("1 erased since");
  });

  test("only people in the same channel can see the explanation", async () => {
    const { handle, explained, texts } = start();
    const question = await handle(message("Hello"));
    expect(await explained(question.key, { author: ben })).toContain("**What I was given");
    const elsewhere = action("explain", toTurnId(question.key), { author: ben });
    const reply = { ...elsewhere.reply, channelId: "another" };
    await handle({ ...elsewhere, reply });
    expect(texts().at(-1)).toBe("This belongs to another conversation, so nothing was done.");
    expect(await explained("never asked")).toMatch(/^This answer is too old/);
  });

  test("the explanation fits into one message and leaves out the oldest messages first", async () => {
    const { handle, explained, violations } = start({ maxLength: 600 });
    for (let at = 0; at < 12; at++) {
      await handle(message(`question ${at} ${"x".repeat(60)}`));
    }
    const question = await handle(message("the last one"));
    const told = await explained(question.key);
    expect(told).toMatch(/- Messages: 25, the newest \d shown here/);
    expect(told).toContain("the last one");
    expect(told).not.toContain("question 0 ");
    expect(violations).toEqual([]);
  });

  test("the explanation is exported to the asker, and erased with everything else", async () => {
    const database = new DatabaseSync(":memory:");
    const { handle, records } = start({ database });
    const question = await handle(message("my secret"));
    const turnId = toTurnId(question.key);
    expect(await records.readTraces("test", ada.id)).toMatchObject([
      { turnId, given: { shown: [question.messageId] } },
    ]);
    await handle(command("forget", "me for good"));
    expect([(await records.load(turnId))?.trace, await records.readTraces("test", ada.id)]).toEqual([undefined, []]);
  });

  test("the explanation links to the messages that a search found, if the reader can open them now", async () => {
    const open = new Set(["one", "two"]);
    const platform = fakePlatform({ traits: { secondThoughts: true } });
    const mayShow = async (id: string, { reply }: Actor) => reply.visibleTo === ada.id && open.has(id);
    const find: Tool = {
      ...look,
      run: async (_args, { onFound }) => {
        const hits = [...open].map((placeId) => ({ placeId, link: `https://chat.example/${placeId}` }));
        onFound?.({ hits, withheld: 3 });
        return "quotes";
      },
    };
    const { handle, texts } = startEngine({
      platform,
      adapterOf: () => ({ ...platform.adapter, mayShow }),
      scripts: [[CALL], ["It rains."]],
      tools: [find],
    });
    const question = await handle(message("The weather?"));
    open.delete("two");
    await handle(action("explain", toTurnId(question.key)));
    expect(texts().at(-1)?.split("\n").slice(-3)).toEqual([
      "  - Found: https://chat.example/one",
      "  - Found: 1 more that you can't open now",
      "  - 3 results left out because not everyone here can open them.",
    ]);
  });
});
