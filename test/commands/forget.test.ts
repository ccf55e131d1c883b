import { describe, expect, test } from "vitest";
import { createForgetCommand } from "../../src/commands/forget.ts";
import { command } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";

async function forget(text: string, count = 3) {
  const { sink, texts } = fakePlatform();
  const erased: string[] = [];
  const eraser = (what: string) => async () => {
    erased.push(what);
    return count;
  };
  const erase = { conversation: eraser("conversation"), everything: eraser("everything") };
  const forgetting = createForgetCommand({
    erase,
    access: { isAdmin: () => false },
    audit: { note: async () => true },
  });
  await forgetting.run(command("forget", text), sink, new AbortController().signal);
  return { erased, answer: texts()[0] };
}

describe("/forget", () => {
  test("/forget without saying what erases nothing and asks which", async () => {
    for (const text of ["", "it", "the conversation of yesterday"]) {
      expect(await forget(text)).toEqual({ erased: [], answer: expect.stringMatching(/^Say which: .*`me`/) });
    }
  });

  test("/forget with a word for it erases this conversation", async () => {
    for (const text of ["conversation", " Here "]) {
      expect(await forget(text)).toEqual({ erased: ["conversation"], answer: expect.stringContaining("3 messages") });
    }
  });

  test("/forget says how to name a conversation where there is none", async () => {
    expect((await forget("here", 0)).answer).toContain("reply to a message");
  });

  test("/forget of everything erases nothing and asks whether that is meant", async () => {
    for (const text of ["me", "everything", " All "]) {
      expect(await forget(text)).toEqual({
        erased: [],
        answer: expect.stringMatching(/nothing is erased yet.*me for good/),
      });
    }
  });

  test("/forget of everything for good erases it", async () => {
    for (const text of ["me for good", "Everything  for good"]) {
      expect(await forget(text)).toEqual({ erased: ["everything"], answer: expect.stringContaining("3 messages") });
    }
    expect((await forget("me for good", 0)).answer).toMatch(/nothing left/);
  });

  test("/forget with a long run of blanks costs no more than its length", { timeout: 20_000 }, async () => {
    const { answer } = await forget(`me${" ".repeat(150_000)}for bad`);
    expect(answer).toMatch(/^Say which/);
  });
});
