import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { ben, message } from "../../lab/support/events.ts";
import { silent } from "../../lab/support/log.ts";
import type { InboundEvent } from "../../src/port/events.ts";
import type { Entry } from "../../src/queue/journal.ts";
import { createLanes, type Source } from "../../src/queue/lanes.ts";
import { createSqliteJournal } from "../../src/queue/sqlite-journal.ts";

const SOURCE: Source = {
  journal: createSqliteJournal({ database: new DatabaseSync(":memory:"), log: silent }),
  partitions: new Map(),
};

/** Lanes with one source, which numbers the entries as they arrive. */
function openLanes() {
  const lanes = createLanes();
  let count = 0;
  const toEntry = (event: InboundEvent): Entry => ({ id: String((count += 1)), event, partition: 0, deaths: 0 });
  return {
    ...lanes,
    add(event: InboundEvent) {
      const entry = toEntry(event);
      lanes.add(SOURCE, entry);
      return entry;
    },
    next: (choose: Parameters<typeof lanes.next>[0] = ([first]) => first) => lanes.next(choose),
  };
}

describe("the lanes of the queue", () => {
  test("a conversation has one position in the line, however many of its events wait", () => {
    const lanes = openLanes();
    for (const text of ["a1", "a2", "a3"]) lanes.add(message(text, { conversationId: "a" }));
    lanes.add(message("b1", { conversationId: "b" }));
    expect([lanes.next(), lanes.next(), lanes.next()].map((lane) => lane?.id)).toEqual(["a", "b", undefined]);
  });

  test("a conversation moves to the end of the line when part of its work is done", () => {
    const lanes = openLanes();
    const first = lanes.add(message("a1", { conversationId: "a" }));
    const second = lanes.add(message("a2", { conversationId: "a" }));
    lanes.add(message("b1", { conversationId: "b" }));
    const lane = lanes.next();
    if (lane === undefined) throw new Error("a lane is ready");
    lanes.finish(lane, [first]);
    expect(lanes.next()?.id).toBe("b");
    expect(lanes.next()?.waiting).toEqual([second]);
  });

  test("lanes do not offer a conversation that is being worked on", () => {
    const lanes = openLanes();
    lanes.add(message("a1"));
    lanes.next();
    lanes.add(message("a2"));
    expect(lanes.next()).toBeUndefined();
  });

  test("lanes skip a conversation that cannot start, which keeps its position", () => {
    const lanes = openLanes();
    for (const id of ["a", "b", "c"]) lanes.add(message(id, { conversationId: id }));
    const isAllowed = { a: false };
    const next = () => lanes.next((ready) => ready.find(({ id }) => id !== "a" || isAllowed.a))?.id;
    expect(next()).toBe("b");
    isAllowed.a = true;
    expect([next(), next(), next()]).toEqual(["a", "c", undefined]);
  });

  test("lanes forget dropped entries and skip a conversation without any", () => {
    const lanes = openLanes();
    lanes.add(message("mine", { conversationId: "a" }));
    lanes.add(message("theirs", { conversationId: "b", author: ben }));
    lanes.drop(({ event }) => event.author.id !== ben.id);
    expect(lanes.waiting()).toBe(1);
    expect(lanes.next()?.id).toBe("b");
    expect(lanes.next()).toBeUndefined();
  });

  test("lanes leave running entries to their work", () => {
    const lanes = openLanes();
    const entry = lanes.add(message("running"));
    const lane = lanes.next();
    if (lane === undefined) throw new Error("a lane is ready");
    lane.taken = [entry];
    lanes.add(message("waiting"));
    lanes.drop(() => true);
    expect(lane.waiting).toEqual([entry]);
  });

  test("lanes recognize an entry that they read again, and put a forgotten entry before later entries", () => {
    const lanes = createLanes();
    const entries = ["9-2", "10-1", "10-10"].map((id) => ({ id, event: message(id), partition: 0, deaths: 0 }));
    const [first, second, third] = entries;
    for (const entry of [second, third, second, first, third]) if (entry !== undefined) lanes.add(SOURCE, entry);
    expect([...lanes.all()].map(({ waiting }) => waiting)).toEqual([entries]);
  });
});
