import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  createReaders,
  type Head,
  type HistoryEntry,
  readEntryKey,
  type StoredEntry,
  toEntryKey,
  toHeadKey,
  toIndexKey,
} from "../../src/history/record.ts";
import type { AttachmentRef } from "../../src/port/events.ts";
import { readKeyPart, toKeyPart } from "../../src/store/key-part.ts";
import { codePoint } from "../support/code-point.ts";
import { said } from "../support/history-contract.ts";

const anyId = fc.oneof(
  fc.string({ unit: codePoint }),
  fc.string({ minLength: 150, maxLength: 400 }),
  fc.constantFrom("\ud800", "\ud801", "#", "a:b", "%"),
);

describe("the history's keys", () => {
  test("the history's keys of different ids are different, bounded, and contain a colon only between their parts", () => {
    fc.assert(
      fc.property(anyId, anyId, (left, right) => {
        expect(toHeadKey(left) === toHeadKey(right)).toBe(left === right);
        expect(toIndexKey(left)).toMatch(/^i:[^:]{0,200}$/);
        expect(toEntryKey({ conversationId: left, seq: 12 })).toMatch(/^e:[^:]{0,200}:12$/);
      }),
    );
  });

  test("the history's keys can be turned back into their ids, and other text cannot", () => {
    fc.assert(
      fc.property(anyId, (id) => {
        expect([id, undefined]).toContain(readKeyPart(toKeyPart(id)));
      }),
    );
    expect(readKeyPart(toKeyPart("slack:T1:C1:17.2"))).toBe("slack:T1:C1:17.2");
  });

  test("the history's keys stay readable if ids are short", () => {
    expect(toEntryKey({ conversationId: "slack:T1:C1:17.2", seq: 3 })).toBe("e:slack%3AT1%3AC1%3A17.2:3");
    expect(toIndexKey("x".repeat(10_000))).toMatch(/^i:#[0-9a-f]{64}$/);
  });

  test("the keys of the history's entries contain their position; other keys do not", () => {
    const place = { conversationId: "slack:T1:C1:17.2", seq: 3 };
    expect(readEntryKey(toEntryKey(place))).toEqual({ ...place, entryKey: toEntryKey(place) });
    expect(readEntryKey(toIndexKey("e:1"))).toBeUndefined();
  });
});

describe("the readers of stored history values", () => {
  test("the history's readers read complete values, and report all others as unreadable", () => {
    const unreadable: string[] = [];
    const readers = createReaders((key) => unreadable.push(key));
    const head = { first: 1, last: 2, followed: true };
    expect(readers.head("h", head)).toEqual(head);
    expect(readers.head("absent", undefined)).toBeUndefined();
    expect(unreadable).toEqual([]);
    const bad = [null, 7, "text", {}, { ...head, last: "2" }, [head]];
    for (const [index, value] of bad.entries()) expect(readers.head(`bad${index}`, value)).toBeUndefined();
    expect(unreadable).toEqual(bad.map((_, index) => `bad${index}`));
  });

  test("the history's readers return every stored field", () => {
    const readers = createReaders(() => {});
    const head: Required<Head> = { first: 1, last: 2, followed: true, followedSince: 3, broughtUntil: 4 };
    expect(readers.head("h", { ...head })).toEqual({ ...head });
    const attachment = { platform: "p", id: "f", name: "a.png", sizeBytes: 1, isFleeting: true, description: "a cat" };
    const entry: Required<HistoryEntry> = {
      id: "1",
      at: 2,
      author: { platform: "p", id: "ada", name: "Ada" },
      askedBy: { platform: "p", id: "ben" },
      messages: [{ role: "user", content: [{ type: "text", text: "x" }], name: "Ada" }],
      attachments: [attachment as AttachmentRef],
      sources: [{ url: "https://a.example/", title: "A", marks: [1] }],
      partial: true,
      isRefused: true,
      edition: 2,
      end: 3,
      former: [{ edition: 1, at: 1, messages: [{ role: "assistant", content: "Before." }], sources: [] }],
      isEarlier: true,
      by: "app",
      isRoot: true,
      quotes: "0",
    };
    const stored: Required<StoredEntry> = { entry, aliases: ["a"], after: 7 };
    expect(readers.entry("e", { ...stored })).toEqual({ ...stored });
  });

  test("the history's readers keep all fields that a gateway added to an entry's messages", () => {
    const readers = createReaders(() => {});
    const entry = { ...said("1", "x"), messages: [{ role: "assistant", content: "x", reasoning: "because" }] };
    expect(readers.entry("e", { aliases: [], entry })?.entry).toEqual(entry);
  });

  test("the history's readers reject an entry whose messages cannot be sent", () => {
    const readers = createReaders(() => {});
    for (const messages of [[null], [{ role: "tool", content: "x" }], [{ role: "user" }], "x"]) {
      expect(readers.entry("e", { aliases: [], entry: { ...said("1", "x"), messages } })).toBeUndefined();
    }
  });
});
