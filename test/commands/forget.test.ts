import { describe, expect, test } from "vitest";
import { command } from "../../lab/support/events.ts";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { fakeServices } from "../../lab/support/services.ts";
import type { CommandDeps } from "../../src/commands/command.ts";
import { FORGET } from "../../src/commands/forget.ts";

async function forget(text: string, count = 3) {
  const { sink, texts } = fakePlatform();
  const erased: string[] = [];
  const eraser = (what: string) => async () => {
    erased.push(what);
    return count;
  };
  const erasers = { conversation: eraser("conversation"), everything: eraser("everything") };
  const run = FORGET.create?.(
    fakeServices<CommandDeps>({ people: { erasers }, access: { isAdmin: () => false }, audit: {} }),
  );
  await run?.(command("forget", text), sink, new AbortController().signal);
  return { erased, answer: texts()[0] };
}

describe("/forget", () => {
  test("/forget without a known word erases nothing and asks what to erase", async () => {
    for (const text of ["", "it", "the conversation of yesterday"]) {
      expect(await forget(text)).toEqual({ erased: [], answer: expect.stringMatching(/^Write `conversation` .*`me`/) });
    }
  });

  test("/forget with a word for the conversation erases this conversation", async () => {
    for (const text of ["conversation", " Here "]) {
      expect(await forget(text)).toEqual({ erased: ["conversation"], answer: expect.stringContaining("3 messages") });
    }
  });

  test("/forget explains how to name a conversation if this channel has none", async () => {
    expect((await forget("here", 0)).answer).toContain("reply to one of its messages");
  });

  test("/forget of everything erases nothing and asks for a confirmation", async () => {
    for (const text of ["me", "everything", " All "]) {
      expect(await forget(text)).toEqual({
        erased: [],
        answer: expect.stringMatching(/Nothing is erased yet.*me for good/),
      });
    }
  });

  test('/forget of everything with "for good" erases everything', async () => {
    for (const text of ["me for good", "Everything  for good"]) {
      expect(await forget(text)).toEqual({ erased: ["everything"], answer: expect.stringContaining("3 messages") });
    }
    expect((await forget("me for good", 0)).answer).toMatch(/nothing left/);
  });

  test("/forget with a long run of spaces takes linear time", { timeout: 20_000 }, async () => {
    const { answer } = await forget(`me${" ".repeat(150_000)}for bad`);
    expect(answer).toMatch(/^Write `conversation`/);
  });
});
