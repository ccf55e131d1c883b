import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, expect, test } from "vitest";
import { type DeliveryDeps, deliver, offer } from "../../../../adapters/local/hear/delivery.ts";
import { createChatList } from "../../../../adapters/local/store/chats.ts";
import { createMessages } from "../../../../adapters/local/store/messages.ts";
import { createOutbox } from "../../../../adapters/local/store/outbox.ts";
import { openTables } from "../../../../adapters/local/store/tables.ts";
import type { Accept, InboundEvent } from "../../../../src/port/events.ts";

const EVENT: InboundEvent = {
  kind: "action",
  key: "local:1",
  conversationId: "local:c",
  author: { id: "you", name: "you" },
  reply: { platform: "local", channelId: "chat-1" },
  at: 1,
  action: "again",
  turnId: "job.1",
};

describe("the delivery of an event at the local page", () => {
  let accept: Accept | undefined;
  let deps: DeliveryDeps;
  let taken: InboundEvent[] = [];

  beforeEach(() => {
    taken = [];
    accept = async (event) => void taken.push(event);
    const tables = openTables(new DatabaseSync(":memory:"));
    const stores = { tables, chats: createChatList(tables), messages: createMessages(tables) };
    deps = { tables, outbox: createOutbox({ ...stores, changed: () => {} }), accept: () => accept };
  });

  test("the page delivers an event once", async () => {
    await offer(deps, EVENT, { kind: "none" });
    await deliver(deps, EVENT.key);
    expect(taken).toEqual([EVENT]);
  });

  test("the outbox is empty after the queue refused an event", async () => {
    accept = () => Promise.reject(new Error("a secret of the disk"));
    await expect(offer(deps, EVENT, { kind: "none" })).rejects.toMatchObject({
      status: 503,
      message: "The server could not store this. Try again in a moment.",
    });
    expect(deps.outbox.keys()).toEqual([]);
  });

  test("the page reports that it accepts nothing before it starts and after it stops", async () => {
    accept = undefined;
    await expect(offer(deps, EVENT, { kind: "none" })).rejects.toMatchObject({ name: "RequestError", status: 503 });
    expect(deps.outbox.keys()).toEqual([]);
  });
});
