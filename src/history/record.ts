import { z } from "zod";
import type { ChatMessage } from "../gateway/chunks.ts";
import type { AttachmentRef } from "../port/events.ts";
import { toKeyPart } from "../store/key-part.ts";

/** The shapes that the history stores, the keys it stores them under, and how both are read back. */

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

/** What was said at one time: a person's message, or an answer with everything that belongs to it. */
export interface HistoryEntry {
  /** The platform's id of a person's message, or the turn's id of an answer. Unique over all conversations. */
  id: string;
  /** Unix milliseconds. */
  at: number;
  /** Of a person's message. The name is untrusted text. */
  author?: { platform: string; id: string; name: string };
  /** Of an answer: whose turn it was. */
  askedBy?: { platform: string; id: string };
  /** A person's message: one user message. An answer: calls, their results and the text, never parted from each other. */
  messages: ChatMessage[];
  attachments?: AttachmentRef[];
  /** The text broke off; what was shown is stored. */
  partial?: boolean;
  /** The gateway would not answer: with the question in front of it, it would refuse everything that follows too. */
  isRefused?: boolean;
  /** A person's message that stood there before the bot was asked: it was said to others. */
  isEarlier?: boolean;
}
