import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, expect, test } from "vitest";
import { type DeliveryDeps, deliver, offer } from "../../../../adapters/local/listen/delivery.ts";
import { createDirectory } from "../../../../adapters/local/store/directory.ts";
import { createMessages } from "../../../../adapters/local/store/messages.ts";
import { createOutbox } from "../../../../adapters/local/store/outbox.ts";
import { openTables } from "../../../../adapters/local/store/tables.ts";
import type { Accept, InboundEvent } from "../../../../src/port/events.ts";

const EVENT: InboundEvent = {
  kind: "action",
  key: "local:1",
  conversationId: "local:c",
  author: { id: "ada", name: "Ada" },
  reply: { platform: "local", channelId: "general" },
  at: 1,
  action: "again",
  turnId: "job.1",
};

describe("handing over an event", () => {
  let accept: Accept | undefined;
  let deps: DeliveryDeps;
  let taken: InboundEvent[] = [];

  beforeEach(() => {
    taken = [];
    accept = async (event) => void taken.push(event);
    const tables = openTables(new DatabaseSync(":memory:"), () => 1);
    const stores = { tables, directory: createDirectory(tables), messages: createMessages(tables) };
    deps = { tables, outbox: createOutbox({ ...stores, changed: () => {} }), accept: () => accept };
  });

  test("an event is handed over once", async () => {
    await offer(deps, EVENT, { kind: "none" });
    await deliver(deps, EVENT.key);
    expect(taken).toEqual([EVENT]);
  });

  test("leaves no trace when it is refused, so that nothing is done later that the person was told is not", async () => {
    accept = () => Promise.reject(new Error("a secret of the disk"));
    await expect(offer(deps, EVENT, { kind: "none" })).rejects.toMatchObject({
      status: 503,
      message: "The server could not store this. Try again in a moment.",
    });
    expect(deps.outbox.keys()).toEqual([]);
  });

  test("says that nothing is taken before the first and after the last moment", async () => {
    accept = undefined;
    await expect(offer(deps, EVENT, { kind: "none" })).rejects.toMatchObject({ name: "RequestError", status: 503 });
    expect(deps.outbox.keys()).toEqual([]);
  });
});
