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

/** Survives a crash, and the buttons use it later. Contains text only while the answer is being written. */
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
  /** The places that a search found, without their text. */
  found: foundPlaces.exactOptional(),
});

/** The context for an answer. It contains message ids but no text, so that people can erase the text. */
const trace = z.object({
  v: z.literal(1),
  at: z.number(),
  model: z.string(),
  /** The model that answered instead of `model`. See `Fallback`. */
  fallback: z
    .object({ model: z.string(), isSecondGateway: z.boolean(), because: z.enum(GATEWAY_ERROR_KINDS) })
    .exactOptional(),
  options: answerOptions,
  /** A hash of the channel's persona. Absent for the configured persona. */
  persona: z.string().exactOptional(),
  /** Ids of the history entries that the model saw, oldest first. `withFiles` are the entries whose files it saw. */
  shown: z.array(z.string()),
  withFiles: z.array(z.string()),
  /** The number of entries that did not fit, if they were counted. */
  dropped: z.number(),
  hasOlder: z.boolean(),
  /** The number of channel messages that the model saw. They are not stored. Absent: 0. */
  fromChannel: z.number().exactOptional(),
  calls: z.array(call),
  /** Notices about missing parts. */
  notices: z.array(z.string()),
  tokens: z.object({ prompt: z.number(), completion: z.number(), estimated: z.number() }),
});

export type Trace = z.infer<typeof trace>;

/** The port owns these two types. Their additional fields are stored unchanged. */
const author: z.ZodType<Author> = z.looseObject({ id: z.string(), name: z.string() });

const reply: z.ZodType<ReplyAddress> = z.looseObject({ platform: z.string(), channelId: z.string() });

export const turnRecord = replyRecord.extend({
  v: z.literal(1),
  conversationId: z.string(),
  reply,
  /** The asker, who can press the reply's buttons. */
  author,
  /** The messages that the turn answers. */
  messageIds: z.array(z.string()),
  phase: z.enum(["received", "posted", "final"]),
  /** How often the turn started without ending. */
  attempts: z.number(),
  /** True if the ending offers a Retry. */
  canRetry: z.boolean(),
  /** True if the ending offers to continue the truncated answer. */
  canContinue: z.boolean(),
  /** The number of the answer that is being written or shown. See `HistoryEntry.edition`. */
  edition: z.int(),
  /** True if the channel rejected further text at some point. The last message can then look unfinished. */
  isRefused: z.boolean().exactOptional(),
  /** The outcomes of its endings so far. There are several after retries. Absent before the first ending. */
  ends: z.array(z.string()).exactOptional(),
  /** The run of a schedule that the turn answers, see `ScheduledRun`; absent: a person asked. */
  scheduled: z.object({ id: z.string(), when: z.string(), recurs: z.literal(true).exactOptional() }).exactOptional(),
  /** The ending asks a person to allow tool calls. Their decision continues the turn. */
  waits: z.literal(true).exactOptional(),
  /** The number of pieces, such as pictures, that the turn made before this attempt. Absent if none. */
  made: z.number().exactOptional(),
  /** Ids of this attempt's pieces so far, in order. Absent if none. */
  pieces: z.array(z.string()).exactOptional(),
  /** People's ratings of the answer, by the people's ids. Only each person's latest rating counts. */
  feedback: z.record(z.string(), feedback).exactOptional(),
  /** Reasons given with the ratings. */
  reasons: z.record(z.string(), z.string()).exactOptional(),
  /** The edition that each person rated, if it is not the first one. */
  judged: z.record(z.string(), z.int()).exactOptional(),
  /** Identifies the attempt whose text notes count. Absent if there are no notes. */
  noter: z.string().exactOptional(),
  /** The number of this attempt's notes that the record includes. */
  noted: z.int().exactOptional(),
  /** The context that the model got for the newest answer that has ended. Absent before the first end. */
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

/** One picture in a turn. Its number is its position in the turn, from 1. */
export type PicturePart = z.infer<typeof part>;

/** The additional fields of a picture turn: the request, and its progress for each part. */
const pictureFields = {
  /** The time of the request, Unix milliseconds. */
  at: z.number(),
  /** The history entry that the pictures follow. Absent means the newest one. */
  after: z.string().optional(),
  prompt: z.string(),
  /** How the first reference is used if a button started the turn. */
  change: z.enum(["vary", "upscale"]).optional(),
  model: z.string(),
  ratio: z.string().optional(),
  size: z.string().optional(),
  isSpoiler: z.boolean(),
  references: z.array(attachment),
  /** Empty while the turn waits to start. */
  parts: z.array(part),
};

const pictureTurn = turnRecord.extend(pictureFields);

/** A picture turn's record. `posted` is the progress message. `parts` contains the messages with the pictures. */
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

/** The record of a turn before any work. */
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

/** The new record for an answer turn. The events start with a message, which can be deleted. */
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

/** A picture that can be opened again, so that it can serve as a reference. */
export function attachmentOf({ parts }: Pick<Pictured, "parts">, number: number): AttachmentRef | undefined {
  const part = parts[number - 1];
  return part?.state === "done" ? part.attachment : undefined;
}

/** The pictures that can be opened again. */
export function picturesOf({ parts }: Pick<Pictured, "parts">): AttachmentRef[] {
  return parts.filter(isDone).flatMap(({ attachment }) => attachment ?? []);
}

/** The references and the pictures that can be opened again. */
export function filesOf(turn: Pictured): AttachmentRef[] {
  return [...turn.references, ...picturesOf(turn)];
}

/** False while the turn waits to start. Its record then contains only the waiting message. */
export function hasBegun({ parts }: Pick<Pictured, "parts">): boolean {
  return parts.length > 0;
}

export function isDone(part: PicturePart): part is Extract<PicturePart, { state: "done" }> {
  return part.state === "done";
}

/** True for a picture that was shown, even if it was deleted later. Nothing is left to do for it. */
export function isSettled({ state }: PicturePart): boolean {
  return state === "done" || state === "deleted";
}
