import { z } from "zod";
import type { AttachmentRef, Author, ReplyAddress } from "../port/events.ts";

/** One picture of a job. Its number is its place in the job, from 1 on. */
export type PicturePart =
  | { state: "pending" }
  /** `attachment` is absent where the platform cannot open it again. */
  | {
      state: "done";
      messageId: string;
      attachment?: AttachmentRef | undefined;
      text: string;
      tokens?: number | undefined;
    }
  /** `reason` is a sentence of Markdown. */
  | { state: "failed"; reason: string; canRetry: boolean }
  | { state: "deleted" };

/** What the first reference is there for, where a button made the job. */
export type PictureChange = "vary" | "upscale";

/**
 * What was asked for, by whom, and how far it has come. It survives a crash in the middle of the job, and is what the
 * buttons under its pictures need afterwards.
 */
export interface PictureJob {
  v: 1;
  id: string;
  /** Unix milliseconds. */
  at: number;
  /** The conversation that the pictures belong to. */
  conversationId: string;
  /** What the pictures follow in its history; absent: the entry before them. */
  after?: string | undefined;
  /** Its history takes the pictures up. False in what was stored while private pictures shared a conversation with others. */
  isRemembered: boolean;
  reply: ReplyAddress;
  author: Author;
  /** In the person's words. */
  prompt: string;
  change?: PictureChange | undefined;
  model: string;
  ratio?: string | undefined;
  size?: string | undefined;
  isSpoiler: boolean;
  references: AttachmentRef[];
  parts: PicturePart[];
  /** The message that says how far it is. */
  statusId?: string | undefined;
  /** Every part has its end, and the status message says so. */
  isOver: boolean;
}

const attachment = z.object({
  platform: z.string(),
  id: z.string(),
  name: z.string(),
  sizeBytes: z.number(),
  isFleeting: z.literal(true).optional(),
});
const part = z.discriminatedUnion("state", [
  z.object({ state: z.literal("pending") }),
  z.object({
    state: z.literal("done"),
    messageId: z.string(),
    attachment: attachment.optional(),
    text: z.string(),
    tokens: z.number().optional(),
  }),
  z.object({ state: z.literal("failed"), reason: z.string(), canRetry: z.boolean() }),
  z.object({ state: z.literal("deleted") }),
]);
const job = z.object({
  v: z.literal(1),
  id: z.string(),
  at: z.number(),
  conversationId: z.string(),
  after: z.string().optional(),
  isRemembered: z.boolean(),
  reply: z.looseObject({ platform: z.string(), channelId: z.string() }),
  author: z.looseObject({ id: z.string(), name: z.string() }),
  prompt: z.string(),
  change: z.enum(["vary", "upscale"]).optional(),
  model: z.string(),
  ratio: z.string().optional(),
  size: z.string().optional(),
  isSpoiler: z.boolean(),
  references: z.array(attachment),
  parts: z.array(part),
  statusId: z.string().optional(),
  isOver: z.boolean(),
});

/** Undefined for what is damaged, or of another version. */
export function readPictureJob(value: unknown): PictureJob | undefined {
  const { success, data } = job.safeParse(value);
  return success ? data : undefined;
}

/** A picture that can be looked at again, as a reference. */
export function attachmentOf(job: PictureJob, number: number): AttachmentRef | undefined {
  const part = job.parts[number - 1];
  return part?.state === "done" ? part.attachment : undefined;
}

/** What it shows, as far as that can be opened. */
export function picturesOf({ parts }: PictureJob): AttachmentRef[] {
  return parts.flatMap((part) => (part.state === "done" ? (part.attachment ?? []) : []));
}

/** What it starts from and what it shows, as far as that can be opened. */
export function filesOf(job: PictureJob): AttachmentRef[] {
  return [...job.references, ...picturesOf(job)];
}
