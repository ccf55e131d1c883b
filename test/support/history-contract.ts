import { beforeEach, describe, expect, test } from "vitest";
import { recordingLog } from "../../lab/support/log.ts";
import { turnsOver } from "../../lab/support/turns.ts";
import { createHistory, type History } from "../../src/history/history.ts";
import type { HistoryEntry } from "../../src/history/record.ts";
import type { Entries } from "../../src/store/keyv.ts";

const TTL_MS = 600_000;

let count = 0;
/** An id that no other test uses, because the store is shared. */
export function uniqueId(name = "c"): string {
  return `test:${name}:${process.pid}:${count++}`;
}

export function said(id: string, content: string, author = { platform: "test", id: "ada", name: "Ada" }): HistoryEntry {
  return { id, at: 1_000, author, messages: [{ role: "user", content }], attachments: [] };
}

export function textOf({ messages }: HistoryEntry): string {
  const content = messages[0]?.content;
  if (typeof content !== "string") throw new TypeError("not a text");
  return content;
}

/** An answer that called a tool first. */
export function answered(id: string, content: string, askedBy = { platform: "test", id: "ada" }): HistoryEntry {
  return {
    id,
    at: 2_000,
    askedBy,
    messages: [
      {
        role: "assistant",
        content: "",
        tool_calls: [{ id: "call_1", type: "function", function: { name: "clock", arguments: '{"zone":"UTC"}' } }],
      },
      { role: "tool", tool_call_id: "call_1", content: "12:00" },
      { role: "assistant", content },
    ],
  };
}

function recordCalls(keyv: Entries, calls: string[]): Entries {
  for (const name of ["get", "getMany", "set", "put", "write", "delete", "deleteMany"] as const) {
    const original = keyv[name].bind(keyv) as (...values: unknown[]) => never;
    keyv[name] = (...values: unknown[]) => {
      calls.push(name);
      return original(...values);
    };
  }
  return keyv;
}

/** The tests that a history must pass on every store. `open` opens namespaces of a running store. */
export function historyContract(open: (namespace: string) => Entries): void {
  let history: History;
  let lines: Array<Record<string, unknown>>;
  beforeEach(() => {
    const recording = recordingLog();
    lines = recording.lines;
    history = createHistory({ open, inTurn: turnsOver(open), ttlMs: TTL_MS, log: recording.log, now: Date.now });
  });
  const ids = async (conversationId: string, maxEntries = 100, beforeId?: string) => {
    const options = beforeId === undefined ? { maxEntries } : { maxEntries, beforeId };
    return (await history.read(conversationId, options)).entries.map(({ id }) => id);
  };

  describe("reading the history", () => {
    test("the history returns appended entries complete and in order", async () => {
      const conversation = uniqueId();
      const entries: HistoryEntry[] = [
        {
          ...said(uniqueId(), ":colon first, é 🦊 \ud800 lone"),
          attachments: [{ platform: "test", id: "f1", name: "ü.png", sizeBytes: 3 }],
        },
        { ...answered(uniqueId(), "It is noon."), partial: true },
        {
          id: uniqueId(),
          at: 3,
          messages: [
            {
              role: "user",
              content: [
                { type: "text", text: "a" },
                { type: "image_url", image_url: { url: "data:," } },
              ],
              name: "x",
            },
          ],
        },
      ];
      for (const entry of entries) await history.append(conversation, entry);
      expect(await history.read(conversation, { maxEntries: 10 })).toEqual({ entries, hasOlder: false });
      expect(await history.read(uniqueId(), { maxEntries: 10 })).toEqual({ entries: [], hasOlder: false });
    });

    test("the history reads no more huge entries than requested, and reports that there are older ones", async () => {
      const conversation = uniqueId();
      const all = Array.from({ length: 60 }, () => uniqueId());
      for (const id of all) await history.append(conversation, said(id, "x".repeat(1_000)));
      const some = await history.read(conversation, { maxEntries: 100, maxChars: 20_000 });
      expect(some.hasOlder).toBe(true);
      expect(some.entries.length).toBeLessThan(60);
      expect(some.entries.map(({ id }) => id)).toEqual(all.slice(-some.entries.length));
      const whole = await history.read(conversation, { maxEntries: 100, maxChars: 100_000 });
      expect(whole).toMatchObject({ hasOlder: false });
      expect(whole.entries.map(({ id }) => id)).toEqual(all);
    });

    test("the history returns the newest entries, reports older ones, and continues from any entry", async () => {
      const conversation = uniqueId();
      const all = Array.from({ length: 7 }, () => uniqueId());
      for (const id of all) await history.append(conversation, said(id, "x"));
      const { entries, hasOlder } = await history.read(conversation, { maxEntries: 3 });
      expect([entries.map(({ id }) => id), hasOlder]).toEqual([all.slice(4), true]);
      expect(await ids(conversation, 3, all[4])).toEqual(all.slice(1, 4));
      expect(await history.read(conversation, { maxEntries: 3, beforeId: all[3] ?? "" })).toMatchObject({
        hasOlder: false,
      });
      expect(await history.read(conversation, { maxEntries: 7 })).toMatchObject({ hasOlder: false });
      expect(await ids(conversation, 3, all[0])).toEqual([]);
      expect(await ids(conversation, 3, uniqueId())).toEqual([]);
      expect(await ids(uniqueId(), 3, all[4])).toEqual([]);
      expect(await ids(conversation, 0)).toEqual([]);
    });

    test("the history reads past erased entries", async () => {
      const conversation = uniqueId();
      const all = Array.from({ length: 30 }, () => uniqueId());
      for (const id of all) await history.append(conversation, said(id, "x"));
      for (const id of all.slice(2, 28)) expect(await history.remove(id)).toBe(true);
      expect(await history.read(conversation, { maxEntries: 3 })).toMatchObject({ hasOlder: true });
      expect(await ids(conversation, 3)).toEqual([all[1], all[28], all[29]]);
      expect(await ids(conversation, 3, all[28])).toEqual([all[0], all[1]]);
    });
  });

  describe("appending to the history", () => {
    test("an entry with a known id replaces the old one in its position, and all its message ids still find it", async () => {
      const conversation = uniqueId();
      const [question, answer, later, posted, second] = Array.from({ length: 5 }, () => uniqueId()) as [
        string,
        string,
        string,
        string,
        string,
      ];
      await history.append(conversation, said(question, "q"));
      await history.append(conversation, { ...answered(answer, "so f"), partial: true }, [posted]);
      await history.append(conversation, said(later, "later"));
      await history.append(conversation, answered(answer, "so far, so good"), [second]);
      const { entries } = await history.read(conversation, { maxEntries: 10 });
      expect(entries).toEqual([said(question, "q"), answered(answer, "so far, so good"), said(later, "later")]);
      for (const id of [answer, posted, second]) {
        expect(await history.find(id)).toEqual({ conversationId: conversation, entryId: answer });
      }
      await history.remove(second);
      for (const id of [answer, posted, second]) expect(await history.find(id)).toBeUndefined();
    });

    test("appending takes one read and one write of the store, which succeed together or not at all; so does an erasure", async () => {
      const calls: string[] = [];
      const recorded = (name: string) => recordCalls(open(name), calls);
      const recording = createHistory({
        open: recorded,
        inTurn: turnsOver(recorded),
        ttlMs: TTL_MS,
        log: recordingLog().log,
        now: Date.now,
      });
      const [conversation, id] = [uniqueId(), uniqueId()];
      await recording.append(conversation, answered(id, "a"), [uniqueId()]);
      expect(calls.splice(0)).toEqual(["getMany", "write"]);
      await recording.remove(id);
      expect(calls.filter((name) => !name.startsWith("get"))).toEqual(["write"]);
    });

    test("concurrent appends to many conversations don't disturb each other", async () => {
      const conversations = Array.from({ length: 12 }, () => uniqueId());
      const lists = conversations.map(() => Array.from({ length: 15 }, () => uniqueId()));
      await Promise.all(
        lists.map(async (list, index) => {
          for (const id of list) await history.append(conversations[index] ?? "", said(id, "x"));
        }),
      );
      expect(await Promise.all(conversations.map((conversation) => ids(conversation)))).toEqual(lists);
      // One author wrote in all of these.
      const kept = await history.exportAuthor("test", "ada");
      const mine = kept.conversations.filter(({ conversationId }) => conversations.includes(conversationId));
      expect(mine.map(({ entries }) => entries.length)).toEqual(conversations.map(() => 15));
    });

    test("the history stores all concurrent appends of one process to a conversation", async () => {
      const conversation = uniqueId();
      const list = Array.from({ length: 40 }, () => uniqueId());
      await Promise.all(list.map((id) => history.append(conversation, said(id, "x"))));
      expect(await ids(conversation)).toEqual(list);
    });
  });

  describe("ids in the history", () => {
    test("the history keeps ids of any characters and any length apart", async () => {
      const long = "l".repeat(100_000);
      const suffix = uniqueId();
      const tricky = [
        "a:b",
        "a",
        "a%3Ab",
        "a*",
        "a?",
        "[a]",
        "h:a",
        "",
        " ",
        "日本",
        "\0",
        "\ud800",
        "\ud801",
        long,
        `${long}2`,
      ];
      const names = tricky.map((name) => name + suffix);
      for (const name of names) {
        await history.append(name, said(`${name}:1`, name), [`${name}:2`]);
        await history.setFollowed(name, name.startsWith("a"));
      }
      for (const name of names) {
        expect(await history.read(name, { maxEntries: 5 })).toEqual({
          entries: [said(`${name}:1`, name)],
          hasOlder: false,
        });
        expect(await history.find(`${name}:2`)).toEqual({ conversationId: name, entryId: `${name}:1` });
        expect(await history.isFollowed(name)).toBe(name.startsWith("a"));
      }
    });
  });

  describe("editing and removing in the history", () => {
    test("an edit changes a person's message, found by its id", async () => {
      const [conversation, question, answer] = [uniqueId(), uniqueId(), uniqueId()];
      await history.append(conversation, said(question, "wrod"));
      await history.append(conversation, answered(answer, "?"));
      const file = { platform: "test", id: "f", name: "f.txt", sizeBytes: 1 };
      expect(await history.edit(question, "word", [file])).toBe(true);
      const { entries } = await history.read(conversation, { maxEntries: 10 });
      expect(entries).toEqual([{ ...said(question, "word"), attachments: [file] }, answered(answer, "?")]);
      expect(await history.edit(answer, "not mine", [])).toBe(false);
      expect(await history.edit(uniqueId(), "nobody's", [])).toBe(false);
    });

    test("an edit does not extend the time for which a message is stored", async () => {
      const [conversation, question] = [uniqueId(), uniqueId()];
      const [brief, longer] = [300, TTL_MS].map((ttlMs) =>
        createHistory({ open, inTurn: turnsOver(open), ttlMs, log: recordingLog().log, now: Date.now }),
      );
      await history.setFollowed(conversation, true);
      await brief?.append(conversation, said(question, "a"));
      expect(await longer?.edit(question, "b", [])).toBe(true);
      await expect
        .poll(() => open("history").keysOf({ platform: "test", id: "ada" }))
        .not.toContainEqual(expect.stringContaining(encodeURIComponent(conversation)));
    });

    test("removing by any of an entry's ids removes it and all its ids", async () => {
      const [conversation, question, answer, posted] = [uniqueId(), uniqueId(), uniqueId(), uniqueId()];
      await history.append(conversation, said(question, "q"));
      await history.append(conversation, answered(answer, "a"), [posted, uniqueId()]);
      expect(await history.remove(posted)).toBe(true);
      expect(await history.remove(posted)).toBe(false);
      expect(await ids(conversation)).toEqual([question]);
      expect(await history.find(answer)).toBeUndefined();
      await history.append(conversation, answered(answer, "again"));
      expect(await ids(conversation)).toEqual([question, answer]);
    });
  });

  test("the history stores whether the bot follows a conversation, even before its first entry", async () => {
    const conversation = uniqueId();
    expect(await history.isFollowed(conversation)).toBe(false);
    await history.setFollowed(conversation, true);
    expect(await history.isFollowed(conversation)).toBe(true);
    expect(await ids(conversation)).toEqual([]);
    const id = uniqueId();
    await history.append(conversation, said(id, "x"));
    expect(await history.isFollowed(conversation)).toBe(true);
    await history.setFollowed(conversation, false);
    expect(await history.isFollowed(conversation)).toBe(false);
    expect(await ids(conversation)).toEqual([id]);
    await history.setFollowed(conversation, true, 2_000);
    await history.setFollowed(conversation, true, 3_000);
    expect(await history.isFollowed(conversation, 1_999)).toBe(false);
    expect(await history.isFollowed(conversation, 2_000)).toBe(true);
  });

  describe("unreadable values in the history", () => {
    const damage = {
      "half a text": undefined,
      "a wrong shape": { entry: { id: 7 } },
    };

    for (const [name, value] of Object.entries(damage)) {
      test(`the history counts ${name} as an absent entry, logs it once, and works on`, async () => {
        const conversation = uniqueId();
        const [first, second, third] = [uniqueId(), uniqueId(), uniqueId()];
        for (const id of [first, second, third]) await history.append(conversation, said(id, "x"));
        const keyv = open("history");
        const { first: seq } = (await keyv.get(`h:${encodeURIComponent(conversation)}`)) as { first: number };
        await keyv.set(`e:${encodeURIComponent(conversation)}:${seq + 1}`, value ?? null);
        expect(await ids(conversation)).toEqual([first, third]);
        expect(await ids(conversation)).toEqual([first, third]);
        expect(lines).toMatchObject([{ msg: "a stored value is invalid and is treated as missing" }]);
        await history.append(conversation, said(second, "written again"));
        expect(await ids(conversation)).toEqual([first, second, third]);
      });
    }

    test("the history restarts a conversation with a damaged head, apart from the old entries", async () => {
      const conversation = uniqueId();
      const [old, fresh] = [uniqueId(), uniqueId()];
      await history.append(conversation, said(old, "old"));
      await open("history").set(`h:${encodeURIComponent(conversation)}`, { first: "one" });
      expect(await ids(conversation)).toEqual([]);
      const later = createHistory({
        open,
        inTurn: turnsOver(open),
        ttlMs: TTL_MS,
        log: recordingLog().log,
        now: () => Date.now() + 1_000,
      });
      await later.append(conversation, said(fresh, "fresh"));
      await later.append(conversation, said(old, "said again"));
      expect(await ids(conversation)).toEqual([fresh, old]);
    });
  });
}
