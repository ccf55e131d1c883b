import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { InboundEvent } from "../../../src/port/events.ts";
import { toTurnId } from "../../../src/port/ids.ts";
import { createEmbeddedQueue } from "../../../src/queue/embedded/embedded-queue.ts";
import type { Queue } from "../../../src/queue/queue.ts";
import { ada, ben, message } from "../../support/events.ts";
import { recordingLog, silent } from "../../support/log.ts";
import { heldWorker, queueContract, quickWorker } from "../../support/queue-contract.ts";

function open(database = new DatabaseSync(":memory:"), maxActive = 16): Queue {
  return createEmbeddedQueue({ database, maxActive, log: silent, retryMs: [1, 4] });
}

describe("embedded queue", () => {
  queueContract(() => {
    const database = new DatabaseSync(":memory:");
    return {
      open: ({ maxActive = 16, log = silent, ...rest } = {}) =>
        createEmbeddedQueue({ database, maxActive, log, retryMs: [1, 4], ...rest }),
    };
  });

  test("takes an event at any moment of the end of another one's work", async () => {
    for (let steps = 0; steps < 12; steps++) {
      const queue = open();
      const { worker, ends, untilBegun } = heldWorker();
      queue.start(worker);
      await queue.accept(message("first", { conversationId: "test:a" }));
      await untilBegun(1);
      ends[0]?.resolve();
      for (let step = 0; step < steps; step++) await Promise.resolve();
      expect(await queue.accept(message("next", { conversationId: "test:b" }))).toBe(true);
      await untilBegun(2);
    }
  });

  test("starts beside events on disk that it cannot read, and logs them once", async () => {
    const database = new DatabaseSync(":memory:");
    const first = open(database);
    const events = ["one", "two", "three"].map((text) => message(text));
    for (const event of events) await first.accept(event);
    await first.close(0);
    const spoil = database.prepare("UPDATE queue_event SET event = ? WHERE key = ?");
    for (const [index, text] of ["{", "null"].entries()) spoil.run(text, events[index]?.key ?? "");
    const { log, lines } = recordingLog();
    const done = Promise.withResolvers<InboundEvent[]>();
    createEmbeddedQueue({ database, maxActive: 16, log, retryMs: [1, 4] }).start(quickWorker(done.resolve));
    expect(await done.promise).toEqual(events.slice(2));
    expect(lines.map(({ key }) => key)).toEqual(["queue_event"]);
  });

  test("takes up open events after a restart, in order, and no finished ones", async () => {
    const database = new DatabaseSync(":memory:");
    const first = open(database);
    for (const text of ["one", "two", "three"]) await first.accept(message(text));
    const { worker, ends, untilBegun } = heldWorker();
    first.start(worker);
    await untilBegun(1);
    ends[0]?.resolve();
    await untilBegun(2);
    // The process "dies" here, in the middle of the second event: nothing of `first` is closed.

    const texts: string[] = [];
    const done = Promise.withResolvers<void>();
    open(database).start(
      quickWorker(([event]) => {
        if (event?.kind === "message") texts.push(event.text);
        if (texts.length === 2) done.resolve();
      }),
    );
    await done.promise;
    expect(texts).toEqual(["two", "three"]);
  });

  test("takes up an event on which the process dies five times, then gives it up, and says so", async () => {
    const database = new DatabaseSync(":memory:");
    await open(database).accept(message("deadly"));
    for (let death = 0; death < 6; death++) {
      const { worker, untilBegun } = heldWorker();
      open(database).start({ ...worker, giveUp: () => Promise.reject(new Error("too early")) });
      await untilBegun(1);
    }
    const told = Promise.withResolvers<InboundEvent[]>();
    const giveUp = async (events: InboundEvent[]) => {
      told.resolve(events);
      return events;
    };
    const { worker, begun } = heldWorker();
    const queue = open(database);
    queue.start({ ...worker, giveUp });
    expect(await told.promise).toMatchObject([{ text: "deadly" }]);
    await queue.close(60_000);
    expect(begun).toEqual([]);
    expect(open(database).depth().waiting).toBe(0);
  });

  test("blames no death on messages that were taken along and left to a turn of their own", async () => {
    const database = new DatabaseSync(":memory:");
    await open(database).accept(message("deadly"));
    await open(database).accept(message("innocent"));
    for (let death = 0; death < 6; death++) {
      const begun = Promise.withResolvers<void>();
      const die = () => {
        begun.resolve();
        return new Promise<never>(() => {});
      };
      open(database).start({ take: (all) => [...all], work: die, onAccepted: () => {} });
      await begun.promise;
    }
    const worked = Promise.withResolvers<InboundEvent[]>();
    open(database).start({
      ...quickWorker((events) => worked.resolve(events)),
      take: (all) => [...all],
      giveUp: async ([first]) => (first === undefined ? [] : [first]),
    });
    expect(await worked.promise).toMatchObject([{ text: "innocent" }]);
  });

  test("gives nothing up for restarts, nor for deaths after which it came further", async () => {
    const database = new DatabaseSync(":memory:");
    const event = message("long");
    await open(database).accept(event);
    for (let start = 0; start < 20; start++) {
      const { worker, ends, untilBegun } = heldWorker();
      const queue = open(database);
      queue.start({ ...worker, giveUp: () => Promise.reject(new Error("given up")) });
      await untilBegun(1);
      if (start % 2 === 0) queue.progressed(toTurnId(event.key));
      else {
        const closed = queue.close(0);
        ends[0]?.reject(new Error("cut"));
        await closed;
      }
    }
    expect(database.prepare("SELECT max(begun) AS begun FROM queue_event").get()).toEqual({ begun: 0 });
  });

  test("does not blame on work that it was cut by the end of the process, even when it did not end in time", async () => {
    const database = new DatabaseSync(":memory:");
    const queue = createEmbeddedQueue({ database, maxActive: 1, log: silent, cutMs: 5 });
    const { worker, untilBegun } = heldWorker();
    queue.start(worker);
    await queue.accept(message("endless"));
    await untilBegun(1);
    await queue.close(0);
    expect(database.prepare("SELECT begun FROM queue_event").get()).toEqual({ begun: 0 });
  });

  test("drops at last what the process dies on also while it is given up", async () => {
    const database = new DatabaseSync(":memory:");
    await open(database).accept(message("deadly"));
    let given = 0;
    for (let death = 0; death < 11; death++) {
      const begun = Promise.withResolvers<void>();
      const die = () => {
        begun.resolve();
        return new Promise<never>(() => {});
      };
      const giveUp = () => {
        given += 1;
        return die();
      };
      open(database).start({ take: (all) => [...all], work: die, giveUp, onAccepted: () => {} });
      await begun.promise;
    }
    expect(given).toBe(5);
    const queue = open(database);
    queue.start({ take: (all) => [...all], work: () => Promise.reject(new Error("again")), onAccepted: () => {} });
    await queue.close(60_000);
    expect(open(database).depth().waiting).toBe(0);
  });

  test("reads events that were stored before deaths were counted", async () => {
    const database = new DatabaseSync(":memory:");
    database.exec(
      "CREATE TABLE queue_event (seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, platform TEXT NOT NULL, author TEXT NOT NULL, event TEXT, accepted_at INTEGER NOT NULL) STRICT",
    );
    const insert = database.prepare(
      "INSERT INTO queue_event (key, platform, author, event, accepted_at) VALUES (?, 'test', 'ada', ?, 0)",
    );
    const event = message("old");
    insert.run(event.key, JSON.stringify(event));
    const { worker, untilBegun, texts } = heldWorker();
    open(database).start(worker);
    await untilBegun(1);
    expect(texts()).toEqual(["old"]);
  });

  test("does no work again that is done, when the disk takes nothing for a while", async () => {
    const { log, lines } = recordingLog();
    const database = new DatabaseSync(":memory:");
    const queue = createEmbeddedQueue({ database, maxActive: 1, log, retryMs: [1, 1] });
    const texts: string[] = [];
    const done = Promise.withResolvers<void>();
    queue.start(
      quickWorker(([event]) => {
        if (event?.kind === "message") texts.push(event.text);
        if (texts.length === 2) done.resolve();
      }),
    );
    // Reading goes on, writing fails: what a full disk looks like.
    const accepted = [queue.accept(message("first")), queue.accept(message("second"))];
    database.exec("PRAGMA query_only = ON");
    await Promise.all(accepted);
    while (lines.length < 3) await new Promise(setImmediate);
    expect(texts).toEqual(["first"]);
    database.exec("PRAGMA query_only = OFF");
    await done.promise;
    expect(texts).toEqual(["first", "second"]);
  });

  test("gives work up also while the disk takes nothing", async () => {
    const { log, lines } = recordingLog();
    const database = new DatabaseSync(":memory:");
    const queue = createEmbeddedQueue({ database, maxActive: 1, log, retryMs: [1, 1] });
    const done = Promise.withResolvers<void>();
    queue.start(
      quickWorker(([event]) => {
        if (event?.kind === "message" && event.text === "poison") throw new Error("always");
        done.resolve();
      }),
    );
    const accepted = [queue.accept(message("poison")), queue.accept(message("fine"))];
    database.exec("PRAGMA query_only = ON");
    await Promise.all(accepted);
    while (lines.length < 13) await new Promise(setImmediate);
    database.exec("PRAGMA query_only = OFF");
    await done.promise;
    expect(lines.filter(({ msg }) => String(msg).includes("given up"))).toHaveLength(1);
  });

  test("erases one author's waiting events and keeps the claims, without the person", async () => {
    const database = new DatabaseSync(":memory:");
    const queue = open(database);
    const [mine, other] = [message("secret of Ada", { author: ada }), message("of Ben", { author: ben })];
    await queue.accept(mine);
    await queue.accept(other);
    await queue.forget("test", ada.id, "none");
    const rows = JSON.stringify(database.prepare("SELECT * FROM queue_event").all());
    expect(rows).not.toContain("secret of Ada");
    expect(rows).not.toContain('"ada"');
    expect(rows).toContain("of Ben");
    expect(queue.depth().waiting).toBe(1);
    expect(await queue.accept(mine)).toBe(false);
  });
});
