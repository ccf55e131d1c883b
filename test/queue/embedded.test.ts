import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { InboundEvent } from "../../src/port/events.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { createEmbeddedQueue } from "../../src/queue/embedded.ts";
import type { Queue, Worker } from "../../src/queue/queue.ts";
import { ada, ben, message } from "../support/events.ts";
import { recordingLog, silent } from "../support/log.ts";

function open(database = new DatabaseSync(":memory:"), maxActive = 16): Queue {
  return createEmbeddedQueue({ database, maxActive, log: silent, retryMs: [1, 4] });
}

/** A worker whose work ends when the test says so. */
function heldWorker() {
  const begun: InboundEvent[][] = [];
  const ends: Array<PromiseWithResolvers<void>> = [];
  const waiters: Array<() => void> = [];
  const noticed: InboundEvent[] = [];
  const signals: AbortSignal[] = [];
  const worker: Worker = {
    take: (waiting) => waiting.slice(0, 1),
    work(events, signal) {
      begun.push(events);
      signals.push(signal);
      const end = Promise.withResolvers<void>();
      ends.push(end);
      for (const wake of waiters.splice(0)) wake();
      return end.promise.then(() => events);
    },
    notice: (event) => void noticed.push(event),
  };
  async function untilBegun(count: number): Promise<void> {
    while (begun.length < count) await new Promise<void>((resolve) => waiters.push(resolve));
  }
  const texts = () => begun.flat().map((event) => (event.kind === "message" ? event.text : event.kind));
  return { worker, begun, ends, noticed, signals, untilBegun, texts };
}

/** A worker that notes what it is given and ends at once. */
function quickWorker(
  onWork: (events: InboundEvent[]) => void | Promise<void>,
  take: Worker["take"] = (all) => all.slice(0, 1),
): Worker {
  const work: Worker["work"] = async (events) => {
    await onWork(events);
    return events;
  };
  return { take, work, notice: () => {} };
}

describe("embedded queue", () => {
  test("drops a second delivery of the same key, also after its work is done and after a restart", async () => {
    const database = new DatabaseSync(":memory:");
    const queue = open(database);
    const event = message("once");
    expect(await queue.accept(event)).toBe(true);
    expect(await queue.accept(event)).toBe(false);
    const done = Promise.withResolvers<void>();
    queue.start(quickWorker(() => done.resolve()));
    await done.promise;
    await queue.close(0);
    expect(await open(database).accept(event)).toBe(false);
  });

  test("works in order within a conversation and side by side between conversations", async () => {
    const queue = open();
    const { worker, ends, untilBegun, texts } = heldWorker();
    queue.start(worker);
    for (const text of ["a1", "a2"]) await queue.accept(message(text));
    await queue.accept(message("b1", { conversationId: "test:b" }));
    await untilBegun(2);
    expect(texts()).toEqual(["a1", "b1"]);
    ends[0]?.resolve();
    await untilBegun(3);
    expect(texts()).toEqual(["a1", "b1", "a2"]);
  });

  test("lets a flooded conversation take one place only", async () => {
    const queue = open(undefined, 2);
    const { worker, untilBegun, texts } = heldWorker();
    queue.start(worker);
    for (let count = 0; count < 100; count++) await queue.accept(message(`flood ${count}`));
    await queue.accept(message("calm", { conversationId: "test:calm", author: ben }));
    await untilBegun(2);
    expect(texts()).toEqual(["flood 0", "calm"]);
  });

  test("runs no more conversations at once than it may", async () => {
    const queue = open(undefined, 2);
    const { worker, ends, untilBegun, begun } = heldWorker();
    queue.start(worker);
    for (const id of ["1", "2", "3"]) {
      await queue.accept(message("hello", { conversationId: id, author: { id, name: id } }));
    }
    await untilBegun(2);
    expect(queue.depth()).toEqual({ waiting: 3, active: 2 });
    expect(begun).toHaveLength(2);
    ends[0]?.resolve();
    await untilBegun(3);
  });

  test("begins a newcomer's question at once while one person's forty are answered slowly", async () => {
    const queue = open();
    const { worker, untilBegun, texts } = heldWorker();
    queue.start(worker);
    for (let count = 0; count < 40; count++) {
      await queue.accept(message(`slow ${count}`, { conversationId: `test:${count}` }));
    }
    await untilBegun(7);
    await queue.accept(message("hi", { conversationId: "test:hi", author: ben }));
    await untilBegun(8);
    expect(texts().at(-1)).toBe("hi");
  });

  test("takes up after a restart what was open, in order, and not what was done", async () => {
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

  test("takes up five times what the process dies on, then gives it up, and says so", async () => {
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
      open(database).start({ take: (all) => [...all], work: die, notice: () => {} });
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
      open(database).start({ take: (all) => [...all], work: die, giveUp, notice: () => {} });
      await begun.promise;
    }
    expect(given).toBe(5);
    const queue = open(database);
    queue.start({ take: (all) => [...all], work: () => Promise.reject(new Error("again")), notice: () => {} });
    await queue.close(60_000);
    expect(open(database).depth().waiting).toBe(0);
  });

  test("reads what waited before deaths were counted", async () => {
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

  test("finishes all events of a batch, wherever in the line they stood", async () => {
    const database = new DatabaseSync(":memory:");
    const queue = open(database);
    for (const text of ["one", "two", "three"]) await queue.accept(message(text));
    const seen: string[][] = [];
    const done = Promise.withResolvers<void>();
    const firstAndLast: Worker["take"] = (waiting) => waiting.filter((_, index) => index !== 1 || waiting.length === 1);
    queue.start(
      quickWorker((events) => {
        seen.push(events.map((event) => (event.kind === "message" ? event.text : "")));
        if (seen.length === 2) done.resolve();
      }, firstAndLast),
    );
    await done.promise;
    expect(seen).toEqual([["one", "three"], ["two"]]);
  });

  test("tries failed work again, before what came later in the conversation", async () => {
    const queue = open();
    const texts: string[] = [];
    const done = Promise.withResolvers<void>();
    queue.start(
      quickWorker(([event]) => {
        if (event?.kind === "message") texts.push(event.text);
        if (texts.length < 3) throw new Error("not yet");
        if (texts.length === 4) done.resolve();
      }),
    );
    await queue.accept(message("stubborn"));
    await queue.accept(message("later"));
    await done.promise;
    expect(texts).toEqual(["stubborn", "stubborn", "stubborn", "later"]);
  });

  test("gives work up that fails again and again, says so in the log, and goes on", async () => {
    const { log, lines } = recordingLog();
    const queue = createEmbeddedQueue({ database: new DatabaseSync(":memory:"), maxActive: 1, log, retryMs: [1, 1] });
    const done = Promise.withResolvers<void>();
    queue.start(
      quickWorker(([event]) => {
        if (event?.kind === "message" && event.text === "poison") throw new Error("always");
        done.resolve();
      }),
    );
    await queue.accept(message("poison"));
    await queue.accept(message("fine"));
    await done.promise;
    expect(lines.some(({ msg }) => String(msg).includes("given up"))).toBe(true);
  });

  test("tells the worker of every accepted event at once, while the conversation is busy", async () => {
    const queue = open();
    const { worker, noticed, untilBegun } = heldWorker();
    queue.start(worker);
    const [first, second] = [message("one"), message("two")];
    await queue.accept(first);
    await untilBegun(1);
    await queue.accept(second);
    expect(noticed).toEqual([first, second]);
  });

  test("accepts nothing while it closes, lets running work finish, and keeps the rest for the next start", async () => {
    const database = new DatabaseSync(":memory:");
    const queue = open(database);
    const { worker, ends, signals, untilBegun, begun } = heldWorker();
    queue.start(worker);
    await queue.accept(message("running"));
    await queue.accept(message("waiting"));
    await untilBegun(1);
    const closed = queue.close(60_000);
    await expect(queue.accept(message("late"))).rejects.toThrow(/shutting down/);
    ends[0]?.resolve();
    await closed;
    expect(signals[0]?.aborted).toBe(false);
    expect(begun).toHaveLength(1);
    expect(open(database).depth()).toEqual({ waiting: 1, active: 0 });
  });

  test("aborts work that is still running when the grace period is over", async () => {
    const queue = open();
    const { worker, ends, signals, untilBegun } = heldWorker();
    queue.start(worker);
    await queue.accept(message("long"));
    await untilBegun(1);
    const closed = queue.close(0);
    const { promise, resolve } = Promise.withResolvers<void>();
    signals[0]?.addEventListener("abort", () => resolve());
    await promise;
    expect(signals[0]?.reason).toBe("shutdown");
    ends[0]?.resolve();
    await closed;
  });

  test("hands out again what the work left", async () => {
    const queue = open();
    for (const text of ["one", "two", "three"]) await queue.accept(message(text));
    const seen: number[] = [];
    const done = Promise.withResolvers<void>();
    queue.start({
      take: (waiting) => [...waiting],
      work: async (events) => {
        if (seen.push(events.length) === 3) done.resolve();
        return events.slice(0, 1);
      },
      notice: () => {},
    });
    await done.promise;
    expect(seen).toEqual([3, 2, 1]);
  });

  test("does not wait for ever for work that does not end when it is aborted", async () => {
    const { log, lines } = recordingLog();
    const database = new DatabaseSync(":memory:");
    const queue = createEmbeddedQueue({ database, maxActive: 1, log, cutMs: 5 });
    const { worker, untilBegun } = heldWorker();
    queue.start(worker);
    await queue.accept(message("endless"));
    await untilBegun(1);
    await queue.close(0);
    expect(lines.some(({ msg }) => String(msg).includes("next start"))).toBe(true);
    expect(open(database).depth().waiting).toBe(1);
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

  test("ends the work on an author that is erased before it resolves, and hands out nothing more of theirs", async () => {
    const queue = open();
    const { worker, signals, ends, untilBegun, begun, texts } = heldWorker();
    queue.start(worker);
    await queue.accept(message("running"));
    await queue.accept(message("waiting"));
    await queue.accept(message("of Ben", { author: ben }));
    await untilBegun(1);
    let isErased = false;
    const erased = queue.forget("test", ada.id, "none").then(() => (isErased = true));
    expect(signals[0]?.reason).toBe("forgotten");
    await new Promise(setImmediate);
    expect(isErased).toBe(false);
    ends[0]?.reject(new Error("cut"));
    await erased;
    await untilBegun(2);
    expect(texts()).toEqual(["running", "of Ben"]);
    expect(begun).toHaveLength(2);
  });

  test("erases what waits of one author and keeps the claims, without the person", async () => {
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
