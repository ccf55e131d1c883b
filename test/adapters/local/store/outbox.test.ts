import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, expect, test } from "vitest";
import { offer } from "../../../../adapters/local/hear/delivery.ts";
import { createChatList } from "../../../../adapters/local/store/chats.ts";
import { createMessages, type Messages } from "../../../../adapters/local/store/messages.ts";
import { createOutbox, type Outbox } from "../../../../adapters/local/store/outbox.ts";
import { openTables, type Tables } from "../../../../adapters/local/store/tables.ts";
import type { InboundEvent } from "../../../../src/port/events.ts";
import { toMessageInput } from "../message-input.ts";

describe("the outbox of the local page", () => {
  let tables: Tables;
  let messages: Messages;
  let outbox: Outbox;
  let changes = 0;

  const event: InboundEvent = {
    kind: "deleted",
    key: "local:1",
    conversationId: "local:c",
    author: { id: "you", name: "you" },
    reply: { platform: "local", channelId: "chat-1" },
    at: 1,
    messageId: "local:1",
  };

  function insert(nonce: string): number {
    return tables.inTransaction(() => messages.insert(toMessageInput(nonce, { isBot: false, isHidden: true })).id);
  }

  beforeEach(() => {
    changes = 0;
    tables = openTables(new DatabaseSync(":memory:"));
    messages = createMessages(tables);
    const chats = createChatList(tables);
    outbox = createOutbox({ tables, chats, messages, changed: () => (changes += 1) });
  });

  test("the outbox applies a change only after the queue accepts its event, and then reports the change", async () => {
    const messageId = insert("n1");
    outbox.note(event, { kind: "show", messageId });
    const accepted = Promise.withResolvers<void>();
    const delivering = outbox.deliver(event.key, () => accepted.promise, 1000);
    expect([messages.isHidden(messageId), changes]).toEqual([true, 0]);
    accepted.resolve();
    await delivering;
    expect([messages.isHidden(messageId), changes, outbox.keys()]).toEqual([false, 1, []]);
  });

  test("the outbox keeps no event that a stopped page cannot deliver", async () => {
    const offering = offer({ tables, outbox, accept: () => undefined }, event, { kind: "none" });
    await expect(offering).rejects.toMatchObject({ name: "RequestError", status: 503 });
    expect(outbox.keys()).toEqual([]);
  });

  test("the outbox does not wait longer than its limit", async () => {
    outbox.note(event, { kind: "none" });
    await expect(outbox.deliver(event.key, () => new Promise(() => {}), 1)).rejects.toThrow("No answer from the queue");
    expect(outbox.has(event.key)).toBe(true);
  });

  test("the outbox does not restore data that was forgotten while it waited for the queue", async () => {
    const messageId = insert("n1");
    outbox.note(event, { kind: "edit", messageId, text: "secret", at: 1 });
    await outbox.deliver(event.key, async () => outbox.clear(), 1000);
    expect(messages.find(messageId)?.text).toBe("n1");
  });

  test("the outbox keeps the first of two entries under one key", () => {
    const messageId = insert("n1");
    outbox.note(event, { kind: "show", messageId });
    outbox.note(event, { kind: "erase", messageId });
    expect(outbox.keys()).toEqual([event.key]);
  });

  test("the outbox returns the keys in order of arrival", () => {
    for (const key of ["local:b", "local:a", "local:c"]) outbox.note({ ...event, key }, { kind: "none" });
    expect(outbox.keys()).toEqual(["local:b", "local:a", "local:c"]);
  });
});
