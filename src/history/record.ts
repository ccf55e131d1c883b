import { createHash } from "node:crypto";
import { z } from "zod";
import type { HistoryEntry } from "./history.ts";

/** The shapes that the history stores, the keys it stores them under, and how both are read back. */

/** Longer ids are hashed, so that a key has a bound whatever a platform calls its things. */
const MAX_KEY_PART_CHARS = 200;

/** One per conversation, of a size that does not depend on its length. */
export interface Head {
  /** Numbers of the first and the last entry; entries between them may be missing. */
  first: number;
  last: number;
  followed: boolean;
  /** When the message was written that began it, Unix milliseconds. */
  followedSince?: number | undefined;
}

/** Where an entry is; stored under its id and under each of its aliases. */
export interface Position {
  conversationId: string;
  seq: number;
  entryId: string;
}

/** One per entry that concerns a person; holds all it takes to erase that entry when the entry cannot be read. */
export interface AuthorPosition extends Position {
  aliases: string[];
}

export interface StoredEntry {
  entry: HistoryEntry;
  aliases: string[];
  /**
   * Number of the entry that it continues. Absent: what a person said follows everything before it, and an answer the
   * entry right before it.
   */
  after?: number;
}

/** Stands where an entry was erased that named the one it continues, for what continues it in turn. */
export interface ErasedEntry {
  entry?: undefined;
  after: number;
}

const version = z.literal(1);
const textOrParts = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]);
const person = z.object({ platform: z.string(), id: z.string() });
const messageSchema = z.discriminatedUnion("role", [
  z.looseObject({ role: z.literal("system"), content: textOrParts }),
  z.looseObject({ role: z.literal("user"), content: textOrParts }),
  z.looseObject({
    role: z.literal("assistant"),
    content: z.string(),
    tool_calls: z
      .array(z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string() }) }))
      .optional(),
  }),
  z.looseObject({ role: z.literal("tool"), content: z.string(), tool_call_id: z.string() }),
]);
const position = { conversationId: z.string(), seq: z.int(), entryId: z.string() };

const headSchema = z.object({
  v: version,
  first: z.int(),
  last: z.int(),
  followed: z.boolean(),
  followedSince: z.number().optional(),
});
const positionSchema = z.object({ v: version, ...position });
const authorPositionSchema = z.object({ v: version, ...position, aliases: z.array(z.string()) });
const erasedEntrySchema = z.strictObject({ v: version, after: z.int() });
const storedEntrySchema = z.object({
  v: version,
  aliases: z.array(z.string()),
  after: z.int().optional(),
  entry: z.object({
    id: z.string(),
    at: z.number(),
    author: person.extend({ name: z.string() }).optional(),
    askedBy: person.optional(),
    messages: z.array(messageSchema),
    attachments: z
      .array(
        z.object({
          ...person.shape,
          name: z.string(),
          sizeBytes: z.number(),
          isFleeting: z.literal(true).optional(),
        }),
      )
      .optional(),
    partial: z.boolean().optional(),
    isRefused: z.boolean().optional(),
    isEarlier: z.boolean().optional(),
  }),
});

/** Reads a stored value. undefined: it is absent, or it is damaged or of a version this code does not know. */
export type Read<T> = (key: string, value: unknown) => T | undefined;

export interface Readers {
  head: Read<Head>;
  position: Read<Position>;
  authorPosition: Read<AuthorPosition>;
  entry: Read<StoredEntry | ErasedEntry>;
}

/** `onUnreadable` is told the key of every value that is there and cannot be read. */
export function createReaders(onUnreadable: (key: string) => void): Readers {
  const readerOf =
    <T>(schema: z.ZodType): Read<T> =>
    (key, value) => {
      if (value === undefined) return undefined;
      const result = schema.safeParse(value);
      if (result.success) return result.data as T;
      onUnreadable(key);
      return undefined;
    };
  return {
    head: readerOf(headSchema),
    position: readerOf(positionSchema),
    authorPosition: readerOf(authorPositionSchema),
    entry: readerOf(z.union([storedEntrySchema, erasedEntrySchema])),
  };
}

export function toHeadKey(conversationId: string): string {
  return `h:${toKeyPart(conversationId)}`;
}

export function toEntryKey({ conversationId, seq }: { conversationId: string; seq: number }): string {
  return `e:${toKeyPart(conversationId)}:${seq}`;
}

/** `id`: of an entry, or one of its aliases. */
export function toIndexKey(id: string): string {
  return `i:${toKeyPart(id)}`;
}

/**
 * The namespace, below that of the history, in which every key is the place of an entry that concerns the person.
 * A key in it is the entry's own without `e:`.
 */
export function toAuthorNamespace({ platform, id }: { platform: string; id: string }): string {
  return `a:${toKeyPart(platform)}:${toKeyPart(id)}`;
}

/** The keys, in the namespace of the history, under which the people find an entry whom it concerns. */
export function toAuthorKeys({ author, askedBy }: HistoryEntry, entryKey: string): string[] {
  const owners = [author, askedBy].filter((owner) => owner !== undefined);
  return [...new Set(owners.map((owner) => toAuthorKey(owner, entryKey)))];
}

export function toAuthorKey(person: { platform: string; id: string }, entryKey: string): string {
  return `${toAuthorNamespace(person)}:${entryKey.slice("e:".length)}`;
}

/**
 * Part of a key: never contains ":", and different ids never have the same one. Short ids stay readable; what is
 * long, or not valid Unicode, is hashed, and "#" occurs in no readable one.
 */
export function toKeyPart(id: string): string {
  if (id.length <= MAX_KEY_PART_CHARS && id.isWellFormed()) {
    const part = encodeURIComponent(id);
    if (part.length <= MAX_KEY_PART_CHARS) return part;
  }
  return `#${createHash("sha256").update(id, "utf16le").digest("hex")}`;
}

/** The id that a part of a key was made of; undefined for one that was hashed. */
export function readKeyPart(part: string): string | undefined {
  return part.startsWith("#") ? undefined : decodeURIComponent(part);
}
