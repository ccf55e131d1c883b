import { describe, expect, test } from "vitest";
import { readCustomId, readCustomIds, toCustomId, toMessageBody } from "../../../../adapters/discord/write/draft.ts";
import { draft } from "../stage.ts";

describe("the body of a message", () => {
  test("the body of a message notifies no one and shows no link previews", () => {
    expect(toMessageBody(draft("hi"), {})).toEqual({
      content: "hi",
      allowed_mentions: { parse: [], replied_user: false },
      flags: 4,
      components: [],
    });
  });

  test("the body of a message contains the text unchanged if only the conversion would make it too long", () => {
    const bars = "|| ".repeat(660);
    expect(toMessageBody(draft(bars), {}).content).toBe(bars);
  });

  test("the newest steps appear above a growing text, as plain small print, if there is room", () => {
    const RUNNING = { state: "running" as const, runningMs: 12_300 };
    const steps = ["one", "two", "three", "**four** <@1>", "five"].map((title, index) => {
      return { id: String(index), title, ...(index === 4 ? RUNNING : { state: "done" as const }) };
    });
    const growing = { ...draft("Let me look."), streaming: true, steps };
    expect(toMessageBody(growing, {}).content).toBe(
      "-# ✅ two\n-# ✅ three\n-# ✅ four 1\n-# ⏳ five, 12 s\nLet me look.",
    );
    expect(toMessageBody({ ...growing, streaming: false }, {}).content).toBe("-# Used 5 tools, 0.1 s\nLet me look.");
    const full = "x".repeat(1_990);
    expect(toMessageBody({ ...growing, markdown: full }, {}).content).toBe(full);
  });

  test("five buttons fit in a row, and the next one starts another row", () => {
    const actions = ["good", "bad", "again", "vary", "edit", "upscale", "delete"] as const;
    const buttons = actions.map((action) => ({ action, turnId: "t", label: action }));
    const { components } = toMessageBody(draft("hi", { buttons }), {});
    expect(components.map((row) => readCustomIds([row]))).toEqual([
      ["good:t", "bad:t", "again:t", "vary:t", "edit:t"],
      ["upscale:t", "delete:t"],
    ]);
  });

  test("the body of a message has a button for each action, with all it needs in its id", () => {
    const button = { action: "stop" as const, turnId: "0123456789abcdef", label: "Stop" };
    const context = { root: "1234567890123456789", mark: "0123456789abcdef" };
    const { components } = toMessageBody(draft("hi", { buttons: [button] }), context);
    const [id = ""] = readCustomIds(components);
    expect(id.length).toBeLessThanOrEqual(100);
    expect(readCustomId(id)).toEqual({ action: "stop", turnId: button.turnId, ...context });
  });
});

describe("a button's id", () => {
  test("a button's id keeps its action and its turn if the rest makes it too long", () => {
    const turnId = "t".repeat(70);
    const long = toCustomId({ action: "upscale", turnId, root: "1".repeat(19), mark: "m".repeat(16) });
    expect(long.length).toBeLessThanOrEqual(100);
    expect(readCustomId(long)).toMatchObject({ action: "upscale", turnId, root: "1".repeat(19) });
  });

  test("the adapter ignores the id of another bot's button", () => {
    for (const id of ["", "stop", "destroy:everything", "stop:"]) expect(readCustomId(id)).toBeUndefined();
  });
});
