import { describe, expect, test } from "vitest";
import { createForwards } from "../../../../adapters/discord/hear/forwards.ts";
import type { Message } from "../../../../adapters/discord/hear/wording.ts";

/** A message that is this many milliseconds newer than Discord's first one. */
function packet(atMs: number, more: Partial<Message> = {}): Message {
  const author = { id: "1", username: "ada", global_name: null, discriminator: "0", avatar: null };
  return { id: String(BigInt(atMs) << 22n), channel_id: "c", author, type: 0, content: "look", ...more } as Message;
}

function forward(atMs: number): Message {
  return packet(atMs, { content: "", message_snapshots: [{ message: { content: "news" } }] as never });
}

describe("a forwarded message and its comment", () => {
  test("the bot joins a forward with the comment that its author writes right after it", async () => {
    const forwards = createForwards(0);
    const [news, comment] = [forward(1_000), packet(1_400)];
    expect(forwards.see(news)).toEqual(news);
    expect(forwards.see(comment)).toEqual({ ...comment, comments_on: news });
    expect(await forwards.isCommented(news)).toBe(true);
    expect(forwards.edited(packet(1_400, { content: "read" }))).toMatchObject({ content: "read", comments_on: news });
    expect(forwards.deleted(news.id)).toMatchObject({ content: "read" });
    expect(forwards.edited(comment)).toEqual(comment);
  });

  test.each([
    ["another user's message", packet(1_400, { author: { ...packet(1).author, id: "2" } })],
    ["a message in another channel", packet(1_400, { channel_id: "d" })],
    ["a reply", packet(1_400, { type: 19, message_reference: { type: 0, channel_id: "c" } })],
    ["a later message", packet(6_100)],
    ["a message without text", packet(1_400, { content: "" })],
  ])("the bot does not join a forward with %s", async (_, message) => {
    const forwards = createForwards(0);
    const news = forward(1_000);
    forwards.see(news);
    expect(forwards.see(message)).toEqual(message);
    expect(await forwards.isCommented(news)).toBe(false);
  });

  test("the bot joins a forward with one comment only, even if Discord repeats the comment", async () => {
    const forwards = createForwards(0);
    const [news, next] = [forward(1_000), packet(1_800)];
    forwards.see(news);
    forwards.see(packet(1_400));
    forwards.see(news);
    expect(forwards.see(next)).toEqual(next);
    expect(await forwards.isCommented(news)).toBe(true);
  });

  test("a forward without a comment does not affect later messages", async () => {
    const forwards = createForwards(0);
    const [news, late] = [forward(1_000), packet(3_000)];
    forwards.see(news);
    expect(await forwards.isCommented(news)).toBe(false);
    expect(forwards.see(late)).toEqual(late);
  });
});
