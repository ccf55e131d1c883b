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
  test.each([
    [
      "without a known word asks what to erase",
      ["", "it", "the conversation of yesterday"],
      [],
      /^Write `conversation` .*`me`/,
    ],
    ["with a word for the conversation erases it", ["conversation", " Here "], ["conversation"], /3 messages/],
    ["of everything asks for a confirmation", ["me", "everything", " All "], [], /Nothing is erased yet.*me for good/],
    [
      'of everything with "for good" erases everything',
      ["me for good", "Everything  for good"],
      ["everything"],
      /3 messages/,
    ],
  ])("/forget %s", async (_, texts, erased, words) => {
    for (const text of texts) expect(await forget(text)).toEqual({ erased, answer: expect.stringMatching(words) });
  });

  test("/forget explains how to name a conversation if this channel has none", async () => {
    expect((await forget("here", 0)).answer).toContain("reply to one of its messages");
  });

  test("/forget says that nothing is left if it found nothing", async () => {
    expect((await forget("me for good", 0)).answer).toMatch(/nothing left/);
  });

  test("/forget with a long run of spaces takes linear time", { timeout: 20_000 }, async () => {
    const { answer } = await forget(`me${" ".repeat(150_000)}for bad`);
    expect(answer).toMatch(/^Write `conversation`/);
  });
});
