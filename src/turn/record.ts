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

/**
 * The stored state of a turn. It lets the turn survive a crash, and the buttons under the answer use it later. Contains
 * text only while the answer is being written.
 */
export type TurnRecord = z.infer<typeof turnRecord>;

export type Feedback = z.infer<typeof feedback>;

export const feedback = z.enum(["good", "bad"]);

const call = z.object({
  name: z.string(),
  arguments: z.string(),
  /** When the call started, in Unix milliseconds. Absent if this attempt did not run the call. */
  at: z.number().exactOptional(),
  tookMs: z.number().exactOptional(),
  /**
   * Absent if the call did not run, or if it belongs to an earlier ending of the turn. `unknown` means that no process
   * saw it finish.
   */
  state: z.enum(["running", "done", "failed", "unknown"]).exactOptional(),
  found: foundPlaces.exactOptional(),
});

/**
 * The context that the model saw for an answer. Contains message ids but no text, so that erased text is really gone.
 */
const trace = z.object({
  v: z.literal(1),
  at: z.number(),
  model: z.string(),
  /** The model that answered instead of `model`. */
  fallback: z
    .object({ model: z.string(), isSecondGateway: z.boolean(), because: z.enum(GATEWAY_ERROR_KINDS) })
    .exactOptional(),
  options: answerOptions,
  /** A hash of the channel's persona. Absent if the configured persona was used. */
  persona: z.string().exactOptional(),
  /**
   * Ids of the history entries that the model saw, oldest first. `withFiles` are the entries whose files it saw too.
   */
  shown: z.array(z.string()),
  withFiles: z.array(z.string()),
  /** The number of entries that did not fit into the window, if they were counted. */
  dropped: z.number(),
  hasOlder: z.boolean(),
  /** The number of channel messages that the model saw. They are not stored. Absent means 0. */
  fromChannel: z.number().exactOptional(),
  calls: z.array(call),
  notices: z.array(z.string()),
  tokens: z.object({ prompt: z.number(), completion: z.number(), estimated: z.number() }),
});

export type Trace = z.infer<typeof trace>;

/** The port defines these two types. Fields that are not listed are stored unchecked. */
const author: z.ZodType<Author> = z.looseObject({ id: z.string(), name: z.string() });

const reply: z.ZodType<ReplyAddress> = z.looseObject({ platform: z.string(), channelId: z.string() });

export const turnRecord = replyRecord.extend({
  v: z.literal(1),
  conversationId: z.string(),
  reply,
  author,
  messageIds: z.array(z.string()),
  phase: z.enum(["received", "posted", "final"]),
  /** The number of attempts since the turn last ended. */
  attempts: z.number(),
  canRetry: z.boolean(),
  canContinue: z.boolean(),
  /** The number of the answer that is being written or shown. See `HistoryEntry.edition`. */
  edition: z.int(),
  /** True if the channel refused further text. The last message can then look unfinished. */
  isRefused: z.boolean().exactOptional(),
  /** The outcome of each time that the turn ended. After a retry, there are several. */
  ends: z.array(z.string()).exactOptional(),
  /** Present if a run of a schedule asked the question. */
  scheduled: z.object({ id: z.string(), when: z.string(), recurs: z.literal(true).exactOptional() }).exactOptional(),
  /** True if the answer waits until a person approves its tool calls. */
  waits: z.literal(true).exactOptional(),
  /** How many pieces, such as pictures, the turn made before this attempt. */
  made: z.number().exactOptional(),
  /** Ids of the pieces that this attempt has made, in order. */
  pieces: z.array(z.string()).exactOptional(),
  /** Maps a person's id to that person's latest rating of the answer. */
  feedback: z.record(z.string(), feedback).exactOptional(),
  /** Maps a person's id to the reason that the person gave with the rating. */
  reasons: z.record(z.string(), z.string()).exactOptional(),
  /** Maps a person's id to the edition that the person rated, if that is not the first edition. */
  judged: z.record(z.string(), z.int()).exactOptional(),
  /** Identifies the attempt whose notes of the text count. Absent if there are no notes. */
  noter: z.string().exactOptional(),
  /** How many notes of this attempt the record already includes. */
  noted: z.int().exactOptional(),
  /** Absent until the turn has ended once. */
  trace: trace.optional().catch(undefined),
});

const part = z.discriminatedUnion("state", [
  z.object({ state: z.literal("pending") }),
  z.object({
    state: z.literal("done"),
    messageId: z.string(),
    /** The file of the picture. Absent if the platform cannot open the file again. */
    attachment: attachment.optional(),
    text: z.string(),
    tokens: z.number().optional(),
  }),
  /** `reason` is a sentence in Markdown. */
  z.object({ state: z.literal("failed"), reason: z.string(), canRetry: z.boolean() }),
  z.object({ state: z.literal("deleted") }),
]);

/** One picture of a turn. Its number is its position in the turn, counted from 1. */
export type PicturePart = z.infer<typeof part>;

const pictureFields = {
  /** When the pictures were requested, in Unix milliseconds. */
  at: z.number(),
  /** The id of the history entry that the pictures follow. If absent, they follow the newest entry. */
  after: z.string().optional(),
  prompt: z.string(),
  /** Present if a person started the turn with a button under a picture. */
  change: z.enum(["vary", "upscale"]).optional(),
  model: z.string(),
  ratio: z.string().optional(),
  size: z.string().optional(),
  isSpoiler: z.boolean(),
  references: z.array(attachment),
  /** The pictures of the turn. Empty until the turn starts. */
  parts: z.array(part),
};

const pictureTurn = turnRecord.extend(pictureFields);

/** The record of a picture turn. `posted` has the progress message. `parts` has the messages with the pictures. */
export type PictureTurn = z.infer<typeof pictureTurn>;

/** Parses a stored record. Returns undefined if the record is damaged or has another version. */
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

/** Creates the record for an answer. The first event is a message, even if people have deleted that message. */
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

/** The file of the picture with this number, if the platform can open the file again. */
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

/** False while a picture turn waits to start. Its record then has only the message that says so. */
export function hasBegun({ parts }: Pick<Pictured, "parts">): boolean {
  return parts.length > 0;
}

export function isDone(part: PicturePart): part is Extract<PicturePart, { state: "done" }> {
  return part.state === "done";
}

/** True if the picture was shown, even if people deleted it later. */
export function isSettled({ state }: PicturePart): boolean {
  return state === "done" || state === "deleted";
}
