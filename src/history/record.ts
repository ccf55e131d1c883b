import { z } from "zod";
import type { ChatMessage } from "../gateway/chunks.ts";
import type { AttachmentRef } from "../port/events.ts";
import { source } from "../port/source.ts";
import { readKeyPart, toKeyPart } from "../store/key-part.ts";
import type { Owner } from "../store/owned.ts";

/** The schemas of stored values and of their keys. */

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

const formerAnswer = z.object({
  edition: z.int(),
  at: z.number(),
  messages: z.array(message),
  sources: z.array(source).exactOptional(),
});

export type FormerAnswer = z.infer<typeof formerAnswer>;

export const historyEntry = z.object({
  /** The platform's id of a person's message, or the turn's id of an answer. Unique across all conversations. */
  id: z.string(),
  /** Unix milliseconds. */
  at: z.number(),
  /** The author of a person's message; absent for an answer. The name is untrusted. */
  author: person.extend({ name: z.string() }).exactOptional(),
  /** The person whose question this answers; absent for a person's message. */
  askedBy: person.exactOptional(),
  /** A person's single message, or an answer's tool calls, their results and its text. */
  messages: z.array(message),
  attachments: z.array(attachment).exactOptional(),
  /** The pages that an answer is based on, in the order of their numbers. */
  sources: z.array(source).exactOptional(),
  /** True if the answer was interrupted. The entry contains the part that users saw. */
  partial: z.boolean().exactOptional(),
  /** True if the gateway refused to answer. It would also refuse every later request that contains this question. */
  isRefused: z.boolean().exactOptional(),
  /** Counts the answers to the same question, starting at 1. Absent: 1. */
  edition: z.int().exactOptional(),
  /**
   * How often the turn had ended when this answer was stored. Absent: once. It shows which answer is newer, because the
   * clocks of different processes can differ.
   */
  end: z.int().exactOptional(),
  /** The answers that this one replaced, oldest first. The model does not get them. */
  former: z.array(formerAnswer).exactOptional(),
  /** True for a message that people wrote before anyone asked the bot. */
  isEarlier: z.boolean().exactOptional(),
  /** The kind of author of an earlier message; absent for a person. */
  by: z.enum(["app", "bot"]).exactOptional(),
  /** True if this earlier message started the thread. */
  isRoot: z.boolean().exactOptional(),
  /** Id of the message that this one quotes. */
  quotes: z.string().exactOptional(),
});

/** A person's message, or an answer with its tool calls and their results. */
export type HistoryEntry = z.infer<typeof historyEntry>;

const head = z.object({
  /** Numbers of the first and the last entry. Numbers between them can be unused. */
  first: z.int(),
  last: z.int(),
  followed: z.boolean(),
  /** Time of the message that made the bot follow the conversation, in Unix milliseconds. */
  followedSince: z.number().optional(),
  /** Messages between people up to this time are stored or were erased. Unix milliseconds. */
  broughtUntil: z.number().optional(),
});

/** One value per conversation, of constant size. */
export type Head = z.infer<typeof head>;

const position = z.object({ conversationId: z.string(), seq: z.int(), entryId: z.string() });

/** The position of an entry, stored under its id and each of its aliases. */
export type Position = z.infer<typeof position>;

const storedEntry = z.object({
  entry: historyEntry,
  aliases: z.array(z.string()),
  /**
   * Number of the entry that this one continues. Absent: a question continues everything before it, and an answer
   * continues the entry right before it.
   */
  after: z.int().exactOptional(),
});
export type StoredEntry = z.infer<typeof storedEntry>;

const erasedEntry = z.object({ entry: z.undefined().optional(), after: z.int() });

/** Replaces an erased entry that continued another one, so that later entries can still follow the branch. */
export type ErasedEntry = z.infer<typeof erasedEntry>;

/** Returns a schema for a type that is declared elsewhere. Checks only the fields of `schema` and keeps all others. */
function whole<T>(schema: z.ZodType): z.ZodType<T> {
  return z.custom<T>((value) => schema.safeParse(value).success);
}

/** Parses a stored value. Returns undefined if the value is missing or damaged. */
export type Read<T> = (key: string, value: unknown) => T | undefined;

export interface Readers {
  head: Read<Head>;
  position: Read<Position>;
  entry: Read<StoredEntry | ErasedEntry>;
}

/** Calls `onUnreadable` with the key of each value that cannot be parsed. */
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

export function toIndexKey(id: string): string {
  return `i:${toKeyPart(id)}`;
}

/** Key of the record that says that a message was deleted before it arrived. */
export function toDeletedKey(messageId: string): string {
  return `d:${toKeyPart(messageId)}`;
}

/** Parses the key of an entry; undefined for other keys. An id that is too long to be decoded stays encoded. */
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
