import { z } from "zod";
import { GATEWAY_ERROR_KINDS } from "../gateway/errors.ts";
import type { AttachmentRef, Author, InboundEvent, MessageEvent, ReplyAddress, ScheduledRun } from "../port/events.ts";
import { toTurnId } from "../port/ids.ts";
import { replyRecord } from "../reply/messages.ts";
import { answerOptions } from "../settings/answer-options.ts";
import { foundPlaces } from "../tools/tool.ts";

const attachment: z.ZodType<AttachmentRef> = z.object({
  platform: z.string(),
  id: z.string(),
  name: z.string(),
  sizeBytes: z.number(),
  isFleeting: z.literal(true).optional(),
});

/** Lets a turn survive a crash, and tells the buttons about the answer. Has text only while the answer is written. */
export type TurnRecord = z.infer<typeof turnRecord>;

export type Feedback = z.infer<typeof feedback>;

export const feedback = z.enum(["good", "bad"]);

const call = z.object({
  name: z.string(),
  arguments: z.string(),
  /** Unix milliseconds. Absent for a call that this attempt did not run. */
  at: z.number().exactOptional(),
  tookMs: z.number().exactOptional(),
  /**
   * Absent if the call did not run or belongs to an earlier ending of the turn. `unknown` means that no process saw it
   * finish.
   */
  state: z.enum(["running", "done", "failed", "unknown"]).exactOptional(),
  found: foundPlaces.exactOptional(),
});

/** What the model saw for an answer. Has message ids but no text, so that erased text is gone. */
const trace = z.object({
  v: z.literal(1),
  at: z.number(),
  model: z.string(),
  /** The model that answered instead of `model`. */
  fallback: z
    .object({ model: z.string(), isSecondGateway: z.boolean(), because: z.enum(GATEWAY_ERROR_KINDS) })
    .exactOptional(),
  options: answerOptions,
  /** A hash. Absent for the configured persona. */
  persona: z.string().exactOptional(),
  /** Ids of history entries, oldest first. `withFiles` are those whose files the model saw. */
  shown: z.array(z.string()),
  withFiles: z.array(z.string()),
  /** The number of entries that did not fit, if known. */
  dropped: z.number(),
  hasOlder: z.boolean(),
  /** The number of messages from the channel, which are not stored. Absent: 0. */
  fromChannel: z.number().exactOptional(),
  calls: z.array(call),
  notices: z.array(z.string()),
  tokens: z.object({ prompt: z.number(), completion: z.number(), estimated: z.number() }),
});

export type Trace = z.infer<typeof trace>;

/** The port's types. Their other fields are stored unread. */
const author: z.ZodType<Author> = z.looseObject({ id: z.string(), name: z.string() });

const reply: z.ZodType<ReplyAddress> = z.looseObject({ platform: z.string(), channelId: z.string() });

export const turnRecord = replyRecord.extend({
  v: z.literal(1),
  conversationId: z.string(),
  reply,
  author,
  messageIds: z.array(z.string()),
  phase: z.enum(["received", "posted", "final"]),
  /** The number of attempts since the last end. */
  attempts: z.number(),
  canRetry: z.boolean(),
  canContinue: z.boolean(),
  /** The edition that is written or shown. See `HistoryEntry.edition`. */
  edition: z.int(),
  /** The channel rejected further text, so the last message can look unfinished. */
  isRefused: z.boolean().exactOptional(),
  /** The outcome of each end. Retries add further ones. */
  ends: z.array(z.string()).exactOptional(),
  /** Present if the turn answers a run of a schedule. */
  scheduled: z.object({ id: z.string(), when: z.string(), recurs: z.literal(true).exactOptional() }).exactOptional(),
  /** The answer waits for a person's approval of tool calls. */
  waits: z.literal(true).exactOptional(),
  /** The number of pieces, such as pictures, from before this attempt. */
  made: z.number().exactOptional(),
  /** Ids of this attempt's pieces, in order. */
  pieces: z.array(z.string()).exactOptional(),
  /** The latest rating of each person, by the person's id. */
  feedback: z.record(z.string(), feedback).exactOptional(),
  /** By the person's id. */
  reasons: z.record(z.string(), z.string()).exactOptional(),
  /** By the person's id: the rated edition, if it is not the first. */
  judged: z.record(z.string(), z.int()).exactOptional(),
  /** The attempt whose notes of the text count. Absent without notes. */
  noter: z.string().exactOptional(),
  /** How many of these notes the record includes. */
  noted: z.int().exactOptional(),
  /** Absent before the first end. */
  trace: trace.optional().catch(undefined),
});

const part = z.discriminatedUnion("state", [
  z.object({ state: z.literal("pending") }),
  z.object({
    state: z.literal("done"),
    messageId: z.string(),
    /** Absent if the platform cannot open the file again. */
    attachment: attachment.optional(),
    text: z.string(),
    tokens: z.number().optional(),
  }),
  /** `reason` is a sentence of Markdown. */
  z.object({ state: z.literal("failed"), reason: z.string(), canRetry: z.boolean() }),
  z.object({ state: z.literal("deleted") }),
]);

/** Numbered by its position in the turn, from 1. */
export type PicturePart = z.infer<typeof part>;

const pictureFields = {
  /** Unix milliseconds. */
  at: z.number(),
  /** The history entry before the pictures. Absent: the newest one. */
  after: z.string().optional(),
  prompt: z.string(),
  /** Present if a button under a picture started the turn. */
  change: z.enum(["vary", "upscale"]).optional(),
  model: z.string(),
  ratio: z.string().optional(),
  size: z.string().optional(),
  isSpoiler: z.boolean(),
  references: z.array(attachment),
  /** Empty until the turn starts. */
  parts: z.array(part),
};

const pictureTurn = turnRecord.extend(pictureFields);

/** `posted` is the progress message. `parts` has the messages with the pictures. */
export type PictureTurn = z.infer<typeof pictureTurn>;

/** Undefined if the value is damaged or has another version. */
export function readTurnRecord(value: unknown): TurnRecord | PictureTurn | undefined {
  const isOfPictures = typeof value === "object" && value !== null && "parts" in value;
  return (isOfPictures ? pictureTurn : turnRecord).safeParse(value).data;
}

export function isPictureTurn(record: TurnRecord): record is PictureTurn {
  return "parts" in record;
}

interface Beginning extends Pick<TurnRecord, "id" | "conversationId" | "reply" | "author"> {
  messageIds?: string[];
}

export function toFreshRecord({ messageIds = [], ...beginning }: Beginning): TurnRecord {
  return {
    v: 1,
    ...beginning,
    messageIds,
    posted: [],
    removed: 0,
    isPosting: false,
    phase: "received",
    attempts: 0,
    seen: 0,
    edition: 1,
    canRetry: false,
    canContinue: false,
  };
}

/** The events start with a message, even if that message was deleted. */
export function newRecord(events: readonly InboundEvent[], messages: readonly MessageEvent[]): TurnRecord {
  const [first] = events;
  const last = messages.at(-1) ?? first;
  if (first === undefined || last === undefined) throw new TypeError("A turn starts with a message.");
  return toFreshRecord({
    id: toTurnId(first.key),
    conversationId: last.conversationId,
    reply: last.reply,
    author: last.author,
    messageIds: messages.map(({ messageId }) => messageId),
    ...(last.kind === "message" && last.scheduled && { scheduled: toScheduled(last.scheduled) }),
  });
}

function toScheduled({ id, when, recurs }: ScheduledRun): NonNullable<TurnRecord["scheduled"]> {
  return { id, when, ...(recurs && { recurs }) };
}

interface Pictured {
  parts: readonly PicturePart[];
  references: readonly AttachmentRef[];
}

/** The file of a picture, if it can be opened again. */
export function attachmentOf({ parts }: Pick<Pictured, "parts">, number: number): AttachmentRef | undefined {
  const part = parts[number - 1];
  return part?.state === "done" ? part.attachment : undefined;
}

export function picturesOf({ parts }: Pick<Pictured, "parts">): AttachmentRef[] {
  return parts.filter(isDone).flatMap(({ attachment }) => attachment ?? []);
}

export function filesOf(turn: Pictured): AttachmentRef[] {
  return [...turn.references, ...picturesOf(turn)];
}

/** Before that, the record has only the message about the wait. */
export function hasBegun({ parts }: Pick<Pictured, "parts">): boolean {
  return parts.length > 0;
}

export function isDone(part: PicturePart): part is Extract<PicturePart, { state: "done" }> {
  return part.state === "done";
}

/** True for a picture that was shown, even if people deleted it later. */
export function isSettled({ state }: PicturePart): boolean {
  return state === "done" || state === "deleted";
}
