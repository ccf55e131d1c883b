import { expect, test } from "vitest";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import type { Draft } from "../../src/port/sink.ts";
import { createReplyWriter } from "../../src/reply/writer.ts";

const SENTENCES = Array.from({ length: 120 }, (_, index) => `Sentence number ${index} says a little more of it.`);
const PARAGRAPHS = Array.from({ length: 24 }, (_, index) => SENTENCES.slice(5 * index, 5 * index + 5).join(" "));

/** Grows a reply by this many characters per call. Reports each call with the text that it wrote. */
async function grow(text: string, step: number) {
  const platform = fakePlatform();
  const drafts = new Map<string, Draft[]>();
  const { post, edit } = platform.sink;
  const note = (id: string, draft: Draft) => void drafts.set(id, [...(drafts.get(id) ?? []), draft]);
  const sink: typeof platform.sink = {
    ...platform.sink,
    limits: { ...platform.sink.limits, keptLength: 1_700 },
    async post(draft, nonce, signal) {
      const posted = await post(draft, nonce, signal);
      note(posted.id, draft);
      return posted;
    },
    async edit(id, draft, signal) {
      note(id, draft);
      return edit(id, draft, signal);
    },
  };
  const writer = createReplyWriter({
    right: NO_RIGHT,
    sink,
    record: { id: "turn", posted: [], removed: 0, isPosting: false, seen: 0 },
    isResumed: false,
    refusal: () => ({ note: "", buttons: [] }),
    onRecord: async () => {},
    onSeen: async () => {},
    onCall: () => {},
    onRefused: () => {},
  });
  const before = () => [...drafts.values()].map((all) => all.at(-1)?.markdown ?? "").join("");
  let idle = 0;
  for (let at = 0; at < text.length; at += step) {
    writer.append(text.slice(at, at + step));
    const shown = before();
    await writer.write();
    if (before().length <= shown.length) idle += 1;
  }
  writer.end({ note: "", buttons: [] });
  while ((await writer.write()).behind);
  return { drafts: [...drafts.values()], texts: platform.texts(), idle };
}

test.each([
  ["long paragraphs", PARAGRAPHS.join("\n\n")],
  ["a list", SENTENCES.map((text) => `- ${text}`).join("\n")],
  ["one paragraph", SENTENCES.join(" ")],
  ["code", `\`\`\`ts\n${SENTENCES.join("\n")}\n\`\`\``],
])("an answer of several messages takes back nothing of %s, and each call shows more of it", async (_, text) => {
  for (const step of [7, 30, 150, 400]) {
    const { drafts, texts, idle } = await grow(text, step);
    for (const all of drafts) {
      for (const [index, { markdown }] of all.entries()) {
        const shown = all[index - 1]?.markdown.replace(/\n```$/, "") ?? "";
        expect(markdown.slice(0, shown.length)).toBe(shown);
      }
    }
    expect(texts.length).toBeGreaterThan(2);
    expect(texts.every((one) => /[.`]$/.test(one))).toBe(true);
    // A full message can already be complete when a call starts.
    expect(step > 7 ? idle : 0).toBeLessThanOrEqual(1);
  }
});
