import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { ada, ben, message } from "../../lab/support/events.ts";
import { recordingLog, silent } from "../../lab/support/log.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { createEventQueue } from "../../src/queue/event-queue.ts";
import type { Entry, Journal, JournalReader } from "../../src/queue/journal.ts";
import type { Queue, QueueOptions } from "../../src/queue/queue.ts";
import { createSqliteJournal } from "../../src/queue/sqlite-journal.ts";
import { eventually } from "../support/eventually.ts";
import { heldWorker, queueContract, quickWorker, startHeld } from "../support/queue-contract.ts";

function openQueue({ database, ...options }: { database: DatabaseSync } & Partial<QueueOptions>): Queue {
  const { log = silent } = options;
  const journals = { own: createSqliteJournal({ database, log }) };
  return createEventQueue({ journals, maxActive: 16, retryMs: [1, 4], log, ...options });
}

function open(database = new DatabaseSync(":memory:")): Queue {
  return openQueue({ database });
}

describe("the queue over a journal in SQLite", () => {
  queueContract(() => {
    const database = new DatabaseSync(":memory:");
    return {
      open: (options = {}) => openQueue({ database, ...options }),
    };
  });

  test("the queue accepts events at any moment while other work ends", async () => {
    for (let steps = 0; steps < 12; steps++) {
      const queue = open();
      const { ends, untilBegun } = startHeld(queue);
      await queue.accept(message("first", { conversationId: "test:a" }));
      await untilBegun(1);
      ends[0]?.resolve();
      for (let step = 0; step < steps; step++) await Promise.resolve();
      expect(await queue.accept(message("next", { conversationId: "test:b" }))).toBe(true);
      await untilBegun(2);
    }
  });

  test("the queue starts despite unreadable events on disk, and logs each once", async () => {
    const database = new DatabaseSync(":memory:");
    const first = open(database);
    const events = ["one", "two", "three"].map((text) => message(text));
    for (const event of events) await first.accept(event);
    await first.close(0);
    const spoil = database.prepare("UPDATE queue_event SET event = ? WHERE key = ?");
    for (const [index, text] of ["{", "null"].entries()) spoil.run(text, events[index]?.key ?? "");
    const { log, lines } = recordingLog();
    const done = Promise.withResolvers<InboundEvent[]>();
    openQueue({ database, log }).start(quickWorker(done.resolve));
    expect(await done.promise).toEqual(events.slice(2));
    expect(lines.map(({ key }) => key)).toEqual(["queue_event"]);
  });

  test("after a restart, the queue resumes open events in order, and no finished events", async () => {
    const database = new DatabaseSync(":memory:");
    const first = open(database);
    for (const text of ["one", "two", "three"]) await first.accept(message(text));
    const { ends, untilBegun } = startHeld(first);
    await untilBegun(1);
    ends[0]?.resolve();
    await untilBegun(2);
    // The process "dies" here, in the middle of the second event: the test does not close anything of `first`.

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

  test("the queue gives an event up after five deaths of the process, and reports it", async () => {
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

  test("the queue does not blame a death on messages that a turn took and returned", async () => {
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

  test("restarts, and deaths after progress, do not make the queue give up", async () => {
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

  test("the queue does not blame work that a shutdown aborted, even if the work did not finish in time", async () => {
    const database = new DatabaseSync(":memory:");
    const queue = openQueue({ database, maxActive: 1, cutMs: 5 });
    const { untilBegun } = startHeld(queue);
    await queue.accept(message("endless"));
    await untilBegun(1);
    await queue.close(0);
    expect(database.prepare("SELECT begun FROM queue_event").get()).toEqual({ begun: 0 });
  });

  test("close waits for the last call of abandoned work", async () => {
    const queue = openQueue({ database: new DatabaseSync(":memory:"), maxActive: 1, cutMs: 1_500 });
    const { ends, untilBegun } = startHeld(queue);
    await queue.accept(message("endless"));
    await untilBegun(1);
    const closing = queue.close(0);
    await eventually(() => queue.depth().active).toBe(0);
    let isClosed = false;
    void closing.then(() => (isClosed = true));
    await new Promise(setImmediate);
    expect(isClosed).toBe(false);
    ends[0]?.reject(new Error("cut"));
    await closing;
  });

  test("the queue drops an event if giving the event up also kills the process", async () => {
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

  test("the queue does not repeat finished work while the disk rejects writes", async () => {
    const { log, lines } = recordingLog();
    const database = new DatabaseSync(":memory:");
    const queue = openQueue({ database, maxActive: 1, log, retryMs: [1, 1] });
    const texts: string[] = [];
    const done = Promise.withResolvers<void>();
    queue.start(
      quickWorker(([event]) => {
        if (event?.kind === "message") texts.push(event.text);
        if (texts.length === 2) done.resolve();
      }),
    );
    // Reads work but writes fail, as on a full disk.
    const accepted = [queue.accept(message("first")), queue.accept(message("second"))];
    database.exec("PRAGMA query_only = ON");
    await Promise.all(accepted);
    while (lines.length < 3) await new Promise(setImmediate);
    expect(texts).toEqual(["first"]);
    database.exec("PRAGMA query_only = OFF");
    await done.promise;
    expect(texts).toEqual(["first", "second"]);
  });

  test("the queue gives work up even while the disk rejects writes", async () => {
    const { log, lines } = recordingLog();
    const database = new DatabaseSync(":memory:");
    const queue = openQueue({ database, maxActive: 1, log, retryMs: [1, 1] });
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

  test("erasing an author removes their waiting events and keeps anonymous claims", async () => {
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

describe("the queue with partitions that the process gains and loses", () => {
  const PARTITION = 3;

  /** A journal whose partitions the test adds and removes. */
  function openJournal() {
    const settled: string[] = [];
    const { promise: opened, resolve } = Promise.withResolvers<JournalReader>();
    const journal: Journal = {
      ...createSqliteJournal({ database: new DatabaseSync(":memory:"), log: silent }),
      open: resolve,
      begin: async () => ({
        type: "started",
        deaths: 0,
        right: {
          held: NO_RIGHT,
          settle: async (done) => void settled.push(...done.map(({ id }) => id)),
          uncount: async () => {},
          countAnew: async () => {},
          revoke() {},
        },
      }),
    };
    const queue = createEventQueue({ journals: { own: journal }, maxActive: 16, log: silent, cutMs: 5 });
    const held = startHeld(queue);
    return { opened, queue, settled, ...held };
  }

  const entriesOf = (...texts: string[]) =>
    texts.map(
      (text, index): Entry => ({ id: `${index + 1}-0`, event: message(text), partition: PARTITION, deaths: 0 }),
    );

  test("no work of a partition starts before its backlog is read to the end", async () => {
    const { opened, texts, untilBegun, begun } = openJournal();
    const reader = await opened;
    const [first, second] = entriesOf("first", "second");
    if (first === undefined || second === undefined) throw new Error("There are two.");
    reader.onTaken(PARTITION);
    reader.onEntries(PARTITION, [second], false);
    expect(begun).toEqual([]);
    reader.onEntries(PARTITION, [first], true);
    await untilBegun(1);
    expect(texts()).toEqual(["first"]);
  });

  test("if a partition comes back while its work still runs, each of its events runs once, in order", async () => {
    const { opened, texts, untilBegun, ends, settled, signals } = openJournal();
    const reader = await opened;
    const entries = entriesOf("running", "second", "third");
    reader.onTaken(PARTITION);
    reader.onEntries(PARTITION, entries, true);
    await untilBegun(1);
    expect(reader.onGiving(PARTITION)).toEqual(["test:a"]);
    reader.onTaken(PARTITION);
    reader.onEntries(PARTITION, structuredClone(entries), true);
    for (const count of [1, 2, 3]) {
      await untilBegun(count);
      ends[count - 1]?.resolve();
    }
    await eventually(() => settled).toEqual(["1-0", "2-0", "3-0"]);
    expect(texts()).toEqual(["running", "second", "third"]);
    expect(signals.some(({ aborted }) => aborted)).toBe(false);
  });

  test("work of a lost partition is aborted, and if the partition returns, its events wait until that work has ended", async () => {
    const { opened, begun, untilBegun, ends, signals } = openJournal();
    const reader = await opened;
    const entries = entriesOf("running");
    reader.onTaken(PARTITION);
    reader.onEntries(PARTITION, entries, true);
    await untilBegun(1);
    reader.onLost(PARTITION);
    expect(signals[0]?.reason).toBe("lost");
    reader.onTaken(PARTITION);
    reader.onEntries(PARTITION, structuredClone(entries), true);
    expect(begun).toHaveLength(1);
    ends[0]?.reject(new Error("lost"));
    await untilBegun(2);
  });

  test("an event that is read late, after its partition was lost, does not stay in the queue", async () => {
    const { opened, queue, untilBegun, ends } = openJournal();
    const reader = await opened;
    const [running, late] = entriesOf("running", "late");
    if (running === undefined || late === undefined) throw new Error("There are two.");
    reader.onTaken(PARTITION);
    reader.onEntries(PARTITION, [running], true);
    await untilBegun(1);
    reader.onLost(PARTITION);
    reader.onEntries(PARTITION, [late], true);
    ends[0]?.reject(new Error("lost"));
    await eventually(queue.depth).toEqual({ waiting: 0, active: 0 });
  });
});
