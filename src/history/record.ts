import { z } from "zod";
import type { ChatMessage } from "../gateway/chunks.ts";
import type { AttachmentRef } from "../port/events.ts";
import { toKeyPart } from "../store/key-part.ts";

/** The shapes that the history stores, the keys it stores them under, and how both are read back. */

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

/** An answer that another one was asked for in the place of. */
const formerAnswer = z.object({ edition: z.int(), at: z.number(), messages: z.array(message) });

export type FormerAnswer = z.infer<typeof formerAnswer>;

const historyEntry = z.object({
  /** The platform's id of a person's message, or the turn's id of an answer. Unique over all conversations. */
  id: z.string(),
  /** Unix milliseconds. */
  at: z.number(),
  /** The writer of a person's message; absent for an answer. The name is untrusted text. */
  author: person.extend({ name: z.string() }).exactOptional(),
  /** The person who was answered; absent for a person's message. */
  askedBy: person.exactOptional(),
  /** A person's message: one user message. An answer: calls, their results and the text, never parted from each other. */
  messages: z.array(message),
  attachments: z.array(attachment).exactOptional(),
  /** The text broke off; what was shown is stored. */
  partial: z.boolean().exactOptional(),
  /** The gateway would not answer: with the question in front of it, it would refuse everything that follows too. */
  isRefused: z.boolean().exactOptional(),
  /** The number of an answer among those that its question was given, from 1 on; absent: 1. */
  edition: z.int().exactOptional(),
  /** How often its turn had ended when this was its answer; absent: once. The clocks of processes do not tell. */
  end: z.int().exactOptional(),
  /** Earlier answers that are kept, oldest first. The model sees none of them. */
  former: z.array(formerAnswer).exactOptional(),
  /** A message to others, which stood there before the bot was asked. */
  isEarlier: z.boolean().exactOptional(),
  /** An earlier message by another app, or by this bot; absent: by a person. */
  by: z.enum(["app", "bot"]).exactOptional(),
  /** The earlier message that the thread began with. */
  isRoot: z.boolean().exactOptional(),
  /** Id of the message whose words stand in this one as a quotation. */
  quotes: z.string().exactOptional(),
});

/** A person's message, or an answer with everything that belongs to it. */
export type HistoryEntry = z.infer<typeof historyEntry>;

const head = z.object({
  /** Numbers of the first and the last entry; entries between them may be missing. */
  first: z.int(),
  last: z.int(),
  followed: z.boolean(),
  /** The time of the message that made the bot follow, Unix milliseconds. */
  followedSince: z.number().optional(),
  /** Messages of others up to this time are here or were erased, Unix milliseconds. */
  broughtUntil: z.number().optional(),
});

/** Stored once per conversation; its size does not depend on the conversation's length. */
export type Head = z.infer<typeof head>;

const position = z.object({ conversationId: z.string(), seq: z.int(), entryId: z.string() });

/** The place of an entry; stored under its id and under each of its aliases. */
export type Position = z.infer<typeof position>;

const authorPosition = position.extend({
  aliases: z.array(z.string()),
  /** The time of the message, Unix milliseconds; absent in the oldest. */
  at: z.number().exactOptional(),
});

/** Stored for each entry that concerns a person; enough to erase that entry even if it cannot be read. */
export type AuthorPosition = z.infer<typeof authorPosition>;

const storedEntry = z.object({
  entry: historyEntry,
  aliases: z.array(z.string()),
  /** Number of the entry it continues. Absent: everything before a question, the entry right before an answer. */
  after: z.int().exactOptional(),
});
export type StoredEntry = z.infer<typeof storedEntry>;

const erasedEntry = z.object({ entry: z.undefined().optional(), after: z.int() });

/** Stands in for an erased entry that named the one it continued, for the entry that continues it in turn. */
export type ErasedEntry = z.infer<typeof erasedEntry>;

/** A value of a type that is declared elsewhere: checked as far as it is relied on, and kept with all its fields. */
function whole<T>(schema: z.ZodType): z.ZodType<T> {
  return z.custom<T>((value) => schema.safeParse(value).success);
}

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
    <T>(schema: z.ZodType<T>): Read<T> =>
    (key, value) => {
      if (value === undefined) return undefined;
      const result = schema.safeParse(value);
      if (result.success) return result.data;
      onUnreadable(key);
      return undefined;
    };
  const v = z.literal(1);
  return {
    head: readerOf(head.extend({ v })),
    position: readerOf(position.extend({ v })),
    authorPosition: readerOf(authorPosition.extend({ v })),
    entry: readerOf(z.union([storedEntry.extend({ v }), erasedEntry.extend({ v }).strict()])),
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

/** The mark of a message that was deleted before it came. */
export function toDeletedKey(messageId: string): string {
  return `d:${toKeyPart(messageId)}`;
}

/** A namespace below the history's, whose keys are the person's entries without `e:`. */
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
