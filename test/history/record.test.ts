import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  createReaders,
  type Head,
  type HistoryEntry,
  type StoredEntry,
  toAuthorKeys,
  toAuthorNamespace,
  toEntryKey,
  toHeadKey,
  toIndexKey,
} from "../../src/history/record.ts";
import type { AttachmentRef } from "../../src/port/events.ts";
import { readKeyPart, toKeyPart } from "../../src/store/key-part.ts";
import { codePoint } from "../support/code-point.ts";
import { answered, said } from "../support/history-contract.ts";

const anyId = fc.oneof(
  fc.string({ unit: codePoint }),
  fc.string({ minLength: 150, maxLength: 400 }),
  fc.constantFrom("\ud800", "\ud801", "#", "a:b", "%"),
);

describe("keys", () => {
  test("the history's keys of different ids are different, bounded, and contain a colon only between their parts", () => {
    fc.assert(
      fc.property(anyId, anyId, (left, right) => {
        expect(toHeadKey(left) === toHeadKey(right)).toBe(left === right);
        expect(toIndexKey(left)).toMatch(/^i:[^:]{0,200}$/);
        expect(toEntryKey({ conversationId: left, seq: 12 })).toMatch(/^e:[^:]{0,200}:12$/);
        expect(toAuthorNamespace({ platform: left, id: right })).toMatch(/^a:[^:]*:[^:]*$/);
      }),
    );
  });

  test("the history's keys give back the ids they were made of, or nothing", () => {
    fc.assert(
      fc.property(anyId, (id) => {
        expect([id, undefined]).toContain(readKeyPart(toKeyPart(id)));
      }),
    );
    expect(readKeyPart(toKeyPart("slack:T1:C1:17.2"))).toBe("slack:T1:C1:17.2");
  });

  test("the history's keys stay readable where ids are short", () => {
    expect(toEntryKey({ conversationId: "slack:T1:C1:17.2", seq: 3 })).toBe("e:slack%3AT1%3AC1%3A17.2:3");
    expect(toIndexKey("x".repeat(10_000))).toMatch(/^i:#[0-9a-f]{64}$/);
  });

  test("the history's keys of the people whom an entry concerns lie in their namespaces, under the entry's own key", () => {
    expect(toAuthorKeys(said("1", "x"), "e:c:7")).toEqual(["a:test:ada:c:7"]);
    expect(toAuthorKeys(answered("1", "x", { platform: "p", id: "a:b" }), "e:c:7")).toEqual(["a:p:a%3Ab:c:7"]);
    expect(toAuthorKeys({ id: "1", at: 0, messages: [] }, "e:c:7")).toEqual([]);
  });
});

describe("createReaders", () => {
  test("the history's readers read what is whole, and tell of everything else that is there", () => {
    const unreadable: string[] = [];
    const readers = createReaders((key) => unreadable.push(key));
    const head = { v: 1, first: 1, last: 2, followed: true };
    expect(readers.head("h", head)).toEqual(head);
    expect(readers.head("absent", undefined)).toBeUndefined();
    expect(unreadable).toEqual([]);
    const bad = [null, 7, "text", {}, { ...head, v: 2 }, { ...head, last: "2" }, [head]];
    for (const [index, value] of bad.entries()) expect(readers.head(`bad${index}`, value)).toBeUndefined();
    expect(unreadable).toEqual(bad.map((_, index) => `bad${index}`));
  });

  test("the history's readers give back every field of what is stored", () => {
    const readers = createReaders(() => {});
    const head: Required<Head> = { first: 1, last: 2, followed: true, followedSince: 3, broughtUntil: 4 };
    expect(readers.head("h", { v: 1, ...head })).toEqual({ v: 1, ...head });
    const attachment = { platform: "p", id: "f", name: "a.png", sizeBytes: 1, isFleeting: true, description: "a cat" };
    const entry: Required<HistoryEntry> = {
      id: "1",
      at: 2,
      author: { platform: "p", id: "ada", name: "Ada" },
      askedBy: { platform: "p", id: "ben" },
      messages: [{ role: "user", content: [{ type: "text", text: "x" }], name: "Ada" }],
      attachments: [attachment as AttachmentRef],
      partial: true,
      isRefused: true,
      edition: 2,
      end: 3,
      former: [{ edition: 1, at: 1, messages: [{ role: "assistant", content: "Before." }] }],
      isEarlier: true,
      by: "app",
      isRoot: true,
      quotes: "0",
    };
    const stored: Required<StoredEntry> = { entry, aliases: ["a"], after: 7 };
    expect(readers.entry("e", { v: 1, ...stored })).toEqual({ v: 1, ...stored });
  });

  test("the history's readers leave nothing out of an entry that a gateway added to its messages", () => {
    const readers = createReaders(() => {});
    const entry = { ...said("1", "x"), messages: [{ role: "assistant", content: "x", reasoning: "because" }] };
    expect(readers.entry("e", { v: 1, aliases: [], entry })?.entry).toEqual(entry);
  });

  test("the history's readers refuse an entry whose messages nobody could send", () => {
    const readers = createReaders(() => {});
    for (const messages of [[null], [{ role: "tool", content: "x" }], [{ role: "user" }], "x"]) {
      expect(readers.entry("e", { v: 1, aliases: [], entry: { ...said("1", "x"), messages } })).toBeUndefined();
    }
  });
});
