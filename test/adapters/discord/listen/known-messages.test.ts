import { describe, expect, test } from "vitest";
import { createKnownMessages, toBodyKey } from "../../../../adapters/discord/listen/known-messages.ts";
import { message } from "../../../support/events.ts";

describe("known messages", () => {
  test("keep where a message was delivered, and what it said", () => {
    const known = createKnownMessages();
    const event = message("hello");
    known.set("1", event);
    expect(known.get("1")).toMatchObject({ conversationId: event.conversationId, body: toBodyKey(event) });
    known.forget("1");
    expect(known.get("1")).toBeUndefined();
  });

  test("are the last five thousand", () => {
    const known = createKnownMessages();
    for (let id = 0; id <= 5_000; id++) known.set(String(id), message("x"));
    expect(known.get("0")).toBeUndefined();
    expect(known.get("1")).toBeDefined();
  });

  test("tell the bot's own from others", () => {
    const known = createKnownMessages();
    known.setOwn("1");
    expect([known.isOwn("1"), known.isOwn("2")]).toEqual([true, false]);
  });
});
