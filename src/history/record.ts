import { z } from "zod";
import type { ChatMessage } from "../gateway/chunks.ts";
import type { AttachmentRef } from "../port/events.ts";
import { source } from "../port/source.ts";
import { readKeyPart, toKeyPart } from "../store/key-part.ts";
import type { Owner } from "../store/owned.ts";

/** The schemas of stored values, their keys, and functions that read both. */

const person = z.object({ platform: z.string(), id: z.string() });
const textOrParts = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]);
const message = whole<ChatMessage>(
  z.discriminatedUnion("role", [
    z.object({ role: z.literal("system"), content: textOrParts }),
    z.object({ role: z.literal("user"), content: textOrParts }),
    z.object({
      role: z.literal("assistant"),
      content: z.string(),
      tool_calls: z
        .array(z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) }))
        .optional(),
    }),
    z.object({ role: z.literal("tool"), content: z.string(), tool_call_id: z.string() }),
  ]),
);
const attachment = whole<AttachmentRef>(person.extend({ name: z.string(), sizeBytes: z.number() }));

/** An answer that a newer one replaced. */
const formerAnswer = z.object({
  edition: z.int(),
  at: z.number(),
  messages: z.array(message),
  sources: z.array(source).exactOptional(),
});

export type FormerAnswer = z.infer<typeof formerAnswer>;

export const historyEntry = z.object({
  /** The platform's id for a person's message, or the turn's id for an answer. Unique across all conversations. */
  id: z.string(),
  /** Unix milliseconds. */
  at: z.number(),
  /** The author of a person's message. Absent for an answer. The name is untrusted text. */
  author: person.extend({ name: z.string() }).exactOptional(),
  /** The person whose question was answered. Absent for a person's message. */
  askedBy: person.exactOptional(),
  /** For a person, one user message. For an answer, its tool calls, their results and its text, always together. */
  messages: z.array(message),
  attachments: z.array(attachment).exactOptional(),
  /** The pages behind an answer, in the order of their numbers; absent: none. */
  sources: z.array(source).exactOptional(),
  /** The text broke off; the part that people saw is stored. */
  partial: z.boolean().exactOptional(),
  /** True if the gateway refused to answer. It would also refuse every later request that contains this question. */
  isRefused: z.boolean().exactOptional(),
  /** Counts the answers to the same question, starting at 1. Absent: 1. */
  edition: z.int().exactOptional(),
  /**
   * How often the turn had ended when this answer was stored. Absent: once. Clocks of different processes cannot show
   * the order.
   */
  end: z.int().exactOptional(),
  /** Earlier answers, oldest first. The model does not see them. */
  former: z.array(formerAnswer).exactOptional(),
  /** True for a message to others from before the bot was asked. */
  isEarlier: z.boolean().exactOptional(),
  /** The kind of author of an earlier message. Absent for a person. */
  by: z.enum(["app", "bot"]).exactOptional(),
  /** True for the earlier message that started the thread. */
  isRoot: z.boolean().exactOptional(),
  /** Id of the message that this one quotes. */
  quotes: z.string().exactOptional(),
});

/** A person's message, or an answer with everything that belongs to it. */
export type HistoryEntry = z.infer<typeof historyEntry>;

const head = z.object({
  /** Numbers of the first and last entry. Entries between them can be missing. */
  first: z.int(),
  last: z.int(),
  followed: z.boolean(),
  /** Time of the message that made the bot follow, in Unix milliseconds. */
  followedSince: z.number().optional(),
  /** Others' messages up to this time are stored or were erased. Unix milliseconds. */
  broughtUntil: z.number().optional(),
});

/** Stored once per conversation. Its size does not depend on the length of the conversation. */
export type Head = z.infer<typeof head>;

const position = z.object({ conversationId: z.string(), seq: z.int(), entryId: z.string() });

/** The position of an entry. Stored under its id and each of its aliases. */
export type Position = z.infer<typeof position>;

const storedEntry = z.object({
  entry: historyEntry,
  aliases: z.array(z.string()),
  /**
   * Number of the entry that it continues. Absent: a question continues everything before it, an answer continues the
   * entry right before it.
   */
  after: z.int().exactOptional(),
});
export type StoredEntry = z.infer<typeof storedEntry>;

const erasedEntry = z.object({ entry: z.undefined().optional(), after: z.int() });

/** Replaces an erased entry that named the entry before it, so that later entries can still follow the chain. */
export type ErasedEntry = z.infer<typeof erasedEntry>;

/** Accepts a value whose type is declared elsewhere. Checks the important fields and keeps all of them. */
function whole<T>(schema: z.ZodType): z.ZodType<T> {
  return z.custom<T>((value) => schema.safeParse(value).success);
}

/** Reads a stored value. Undefined if it is missing or damaged. */
export type Read<T> = (key: string, value: unknown) => T | undefined;

export interface Readers {
  head: Read<Head>;
  position: Read<Position>;
  entry: Read<StoredEntry | ErasedEntry>;
}

/** Calls `onUnreadable` with the key of each stored value that cannot be read. */
export function createReaders(onUnreadable: (key: string) => void): Readers {
  const readerOf =
    <T>(schema: z.ZodType<T>): Read<T> =>
    (key, value) => {
      if (value === undefined) return undefined;
      const result = schema.safeParse(value);
      if (result.success) return result.data;
      onUnreadable(key);
      return undefined;
    };
  return {
    head: readerOf(head),
    position: readerOf(position),
    entry: readerOf(z.union([storedEntry, erasedEntry.strict()])),
  };
}

export function toHeadKey(conversationId: string): string {
  return `h:${toKeyPart(conversationId)}`;
}

export function toEntryKey({ conversationId, seq }: { conversationId: string; seq: number }): string {
  return `e:${toKeyPart(conversationId)}:${seq}`;
}

/** `id` is an entry's id or one of its aliases. */
export function toIndexKey(id: string): string {
  return `i:${toKeyPart(id)}`;
}

/** Key of the record that a message was deleted before it arrived. */
export function toDeletedKey(messageId: string): string {
  return `d:${toKeyPart(messageId)}`;
}

/**
 * Reads an entry's position from its key. Undefined for other keys. An id that is too long to be decoded stays encoded.
 */
export function readEntryKey(key: string): { entryKey: string; conversationId: string; seq: number } | undefined {
  const [kind, part = "", seq] = key.split(":");
  return kind === "e" ? { entryKey: key, conversationId: readKeyPart(part) ?? part, seq: Number(seq) } : undefined;
}

export function ownersOf({ author, askedBy }: HistoryEntry): Owner[] {
  return [author, askedBy].filter((owner) => owner !== undefined);
}

export function concerns(entry: HistoryEntry, { platform, id }: Owner): boolean {
  return ownersOf(entry).some((owner) => owner.platform === platform && owner.id === id);
}
