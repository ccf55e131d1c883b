import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, expect, test } from "vitest";
import { createDirectory } from "../../../../adapters/local/store/directory.ts";
import { createMessages, type Messages } from "../../../../adapters/local/store/messages.ts";
import { createOutbox, type Outbox } from "../../../../adapters/local/store/outbox.ts";
import { openTables, type Tables } from "../../../../adapters/local/store/tables.ts";
import type { InboundEvent } from "../../../../src/port/events.ts";
import { toMessageInput } from "../message-input.ts";

describe("the outbox", () => {
  let tables: Tables;
  let messages: Messages;
  let outbox: Outbox;
  let changes = 0;

  const event: InboundEvent = {
    kind: "deleted",
    key: "local:1",
    conversationId: "local:c",
    author: { id: "ada", name: "Ada" },
    reply: { platform: "local", channelId: "general" },
    at: 1,
    messageId: "local:1",
  };

  function insert(nonce: string): number {
    return tables.inTransaction(() => messages.insert(toMessageInput(nonce, { authorId: "ada", isHidden: true })).id);
  }

  beforeEach(() => {
    changes = 0;
    tables = openTables(new DatabaseSync(":memory:"), () => 1);
    messages = createMessages(tables);
    const directory = createDirectory(tables);
    outbox = createOutbox({ tables, directory, messages, changed: () => (changes += 1) });
  });

  test("applies the change only after the event is accepted, and tells of it", async () => {
    const messageId = insert("n1");
    outbox.note(event, { kind: "show", messageId });
    const accepted = Promise.withResolvers<void>();
    const delivering = outbox.deliver(event.key, () => accepted.promise, 1000);
    expect([messages.isHidden(messageId), changes]).toEqual([true, 0]);
    accepted.resolve();
    await delivering;
    expect([messages.isHidden(messageId), changes, outbox.keys()]).toEqual([false, 1, []]);
  });

  test("keeps an event that is not accepted", async () => {
    outbox.note(event, { kind: "none" });
    await expect(outbox.deliver(event.key, () => Promise.reject(new Error("down")), 1000)).rejects.toThrow("down");
    expect(outbox.keys()).toEqual([event.key]);
    const given: InboundEvent[] = [];
    await outbox.deliver(event.key, async (each) => void given.push(each), 1000);
    expect(given).toEqual([event]);
  });

  test("does not wait longer than it may", async () => {
    outbox.note(event, { kind: "none" });
    await expect(outbox.deliver(event.key, () => new Promise(() => {}), 1)).rejects.toThrow("No answer from the queue");
    expect(outbox.has(event.key)).toBe(true);
  });

  test("does not bring back what was forgotten while the queue took its time", async () => {
    const messageId = insert("n1");
    outbox.note(event, { kind: "edit", messageId, text: "secret", at: 1 });
    await outbox.deliver(event.key, async () => outbox.forget("ada"), 1000);
    expect(messages.find(messageId)?.text).toBe("n1");
  });

  test("keeps the first of two notes under one key", () => {
    const messageId = insert("n1");
    outbox.note(event, { kind: "show", messageId });
    outbox.note(event, { kind: "erase", messageId });
    expect(outbox.keys()).toEqual([event.key]);
  });

  test("gives the keys in the order they came", () => {
    for (const key of ["local:b", "local:a", "local:c"]) outbox.note({ ...event, key }, { kind: "none" });
    expect(outbox.keys()).toEqual(["local:b", "local:a", "local:c"]);
  });
});
