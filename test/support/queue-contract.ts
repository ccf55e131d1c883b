import type { Logger } from "pino";
import { expect, test } from "vitest";
import { ada, ben, command, deleted, message } from "../../lab/support/events.ts";
import { recordingLog } from "../../lab/support/log.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import type { Queue, Worker } from "../../src/queue/queue.ts";
import { eventually } from "./eventually.ts";

/** One store and its processes. Each process has its own queue. */
export interface QueueWorld {
  /** Failed work is retried almost immediately. */
  open(options?: { maxActive?: number; log?: Logger; cutMs?: number }): Queue;
}

/** A worker whose work ends when the test says so. */
export function heldWorker() {
  const begun: InboundEvent[][] = [];
  const ends: Array<PromiseWithResolvers<void>> = [];
  const waiters: Array<() => void> = [];
  const noticed: InboundEvent[] = [];
  const signals: AbortSignal[] = [];
  const worker: Worker = {
    take: (waiting) => waiting.slice(0, 1),
    work(events, { signal }) {
      begun.push(events);
      signals.push(signal);
      const end = Promise.withResolvers<void>();
      ends.push(end);
      for (const wake of waiters.splice(0)) wake();
      return end.promise.then(() => events);
    },
    onAccepted: (event) => void noticed.push(event),
  };
  async function untilBegun(count: number): Promise<void> {
    while (begun.length < count) await new Promise<void>((resolve) => waiters.push(resolve));
  }
  const texts = () => begun.flat().map((event) => (event.kind === "message" ? event.text : event.kind));
  return { worker, begun, ends, noticed, signals, untilBegun, texts };
}

/** Starts a queue with a worker whose work ends when the test says so. */
export function startHeld(queue: Queue) {
  const held = heldWorker();
  queue.start(held.worker);
  return held;
}

/** A worker that records its events and finishes at once. */
export function quickWorker(
  onWork: (events: InboundEvent[]) => void | Promise<void>,
  take: Worker["take"] = (all) => all.slice(0, 1),
): Worker {
  const work: Worker["work"] = async (events) => {
    await onWork(events);
    return events;
  };
  return { take, work, onAccepted: () => {} };
}

/** The behaviour that all queues share, wherever they store their events. */
export function queueContract(startWorld: () => QueueWorld): void {
  /** Starts a queue whose work ends when the test says so. */
  function openHeld(options?: Parameters<QueueWorld["open"]>[0]) {
    const world = startWorld();
    const queue = world.open(options);
    return { world, queue, ...startHeld(queue) };
  }

  test("the queue drops a second delivery of the same key, also after its work is done and after a restart", async () => {
    const world = startWorld();
    const queue = world.open();
    const event = message("once");
    expect(await queue.accept(event)).toBe(true);
    expect(await queue.accept(event)).toBe(false);
    const done = Promise.withResolvers<void>();
    queue.start(quickWorker(() => done.resolve()));
    await done.promise;
    await queue.close(0);
    expect(await world.open().accept(event)).toBe(false);
  });

  test("the queue rejects a message whose deletion came first", async () => {
    const queue = startWorld().open();
    const question = message("tea?");
    expect(await queue.accept(deleted(question))).toBe(true);
    expect(await queue.accept(question)).toBe(false);
    expect(await queue.accept(message("coffee?"))).toBe(true);
  });

  test("the queue works in order within a conversation and in parallel between conversations", async () => {
    const { queue, ends, untilBegun, texts } = openHeld();
    for (const text of ["a1", "a2"]) await queue.accept(message(text));
    await queue.accept(message("b1", { conversationId: "test:b" }));
    await untilBegun(2);
    expect(texts().toSorted()).toEqual(["a1", "b1"]);
    ends[texts().indexOf("a1")]?.resolve();
    await untilBegun(3);
    expect(texts().at(-1)).toBe("a2");
  });

  test("the queue gives only one slot to a flooded conversation", async () => {
    const { queue, untilBegun, texts } = openHeld({ maxActive: 2 });
    for (let count = 0; count < 100; count++) await queue.accept(message(`flood ${count}`));
    await queue.accept(message("calm", { conversationId: "test:calm", author: ben }));
    await untilBegun(2);
    expect(texts().toSorted()).toEqual(["calm", "flood 0"]);
  });

  test("the queue never runs more conversations at once than allowed", async () => {
    const { queue, ends, untilBegun, begun } = openHeld({ maxActive: 2 });
    for (const id of ["1", "2", "3"]) {
      await queue.accept(message("hello", { conversationId: id, author: { id, name: id } }));
    }
    await untilBegun(2);
    await eventually(queue.depth).toEqual({ waiting: 3, active: 2 });
    expect(begun).toHaveLength(2);
    ends[0]?.resolve();
    await untilBegun(3);
  });

  test("the queue starts a newcomer's question at once while one person's forty are answered slowly", async () => {
    const { queue, untilBegun, texts } = openHeld();
    for (let count = 0; count < 40; count++) {
      await queue.accept(message(`slow ${count}`, { conversationId: `test:${count}` }));
    }
    await untilBegun(7);
    await queue.accept(message("hi", { conversationId: "test:hi", author: ben }));
    await untilBegun(8);
    expect(texts().at(-1)).toBe("hi");
  });

  test("the queue finishes all events of a batch, wherever they were in the line", async () => {
    const queue = startWorld().open();
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

  test("the queue retries failed work before later events of the conversation", async () => {
    const queue = startWorld().open();
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

  test("the queue gives up work that fails repeatedly, logs it, and continues", async () => {
    const { log, lines } = recordingLog();
    const queue = startWorld().open({ maxActive: 1, log });
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

  test("the queue reports every accepted event to the worker at once, even while the conversation is busy", async () => {
    const { queue, noticed, untilBegun } = openHeld();
    const [first, second] = [message("one"), message("two")];
    await queue.accept(first);
    await untilBegun(1);
    await queue.accept(second);
    await eventually(() => noticed.at(-1)).toEqual(second);
  });

  test("a closing queue accepts nothing, lets running work finish, and keeps the rest for the next start", async () => {
    const { world, queue, ends, signals, untilBegun, begun } = openHeld();
    await queue.accept(message("running"));
    await queue.accept(message("waiting"));
    await untilBegun(1);
    const closed = queue.close(60_000);
    await expect(queue.accept(message("late"))).rejects.toThrow(/shutting down/);
    ends[0]?.resolve();
    await closed;
    expect(signals[0]?.aborted).toBe(false);
    expect(begun).toHaveLength(1);
    const next = startHeld(world.open());
    await next.untilBegun(1);
    expect(next.texts()).toEqual(["waiting"]);
  });

  test("the queue aborts work that is still running at the end of the grace period", async () => {
    const { queue, ends, signals, untilBegun } = openHeld();
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

  test("the queue hands out again the events that the work left", async () => {
    const queue = startWorld().open();
    for (const text of ["one", "two", "three"]) await queue.accept(message(text));
    const seen: number[] = [];
    const done = Promise.withResolvers<void>();
    queue.start({
      take: (waiting) => [...waiting],
      work: async (events) => {
        if (seen.push(events.length) === 3) done.resolve();
        return events.slice(0, 1);
      },
      onAccepted: () => {},
    });
    await done.promise;
    expect(seen).toEqual([3, 2, 1]);
  });

  test("the queue does not wait forever for aborted work that does not end", async () => {
    const { log, lines } = recordingLog();
    const { world, queue, untilBegun } = openHeld({ maxActive: 1, log, cutMs: 5 });
    await queue.accept(message("endless"));
    await untilBegun(1);
    await queue.close(0);
    expect(lines.some(({ msg }) => String(msg).includes("next start"))).toBe(true);
    const next = startHeld(world.open());
    await next.untilBegun(1);
    expect(next.texts()).toEqual(["endless"]);
  });

  test("erasing an author resolves after their running work has ended, and the queue hands out none of their events afterwards", async () => {
    const { queue, signals, ends, untilBegun, begun, texts } = openHeld();
    await queue.accept(message("running"));
    await queue.accept(message("waiting"));
    await queue.accept(message("of Ben", { author: ben }));
    await untilBegun(1);
    let isErased = false;
    const erased = queue.forget("test", ada.id, "none").then(() => (isErased = true));
    await eventually(() => signals[0]?.reason).toBe("forgotten");
    await new Promise(setImmediate);
    expect(isErased).toBe(false);
    ends[0]?.reject(new Error("cut"));
    await erased;
    await untilBegun(2);
    expect(texts()).toEqual(["running", "of Ben"]);
    expect(begun).toHaveLength(2);
  });

  test("the queue erases waiting image turns but no questions, and reports the running ones too", async () => {
    const { queue, ends, untilBegun, begun } = openHeld();
    const draw = (id: string, author = ada) => ({
      ...command("imagine", id, { author }),
      lane: { id: `drawing:${id}`, kind: "drawing" as const, workId: id },
    });
    const [running, waiting, kept] = [draw("one"), draw("one"), draw("one", ben)];
    for (const event of [running, waiting, kept]) await queue.accept(event);
    await untilBegun(1);
    const question = message("of Ada");
    await queue.accept(question);
    await untilBegun(2);
    const erased = await queue.forgetDrawings(({ author }) => author.id === ada.id);
    expect(erased.map(({ key }) => key).toSorted()).toEqual([running.key, waiting.key].toSorted());
    for (const end of ends) end.resolve();
    await untilBegun(3);
    expect(begun.flat().map(({ key }) => key)).toEqual([running.key, question.key, kept.key]);
    expect(await queue.accept(waiting)).toBe(false);
  });
}
