import { z } from "zod";
import type { AttachmentRef, Author, ReplyAddress } from "../port/events.ts";

const attachment: z.ZodType<AttachmentRef> = z.object({
  platform: z.string(),
  id: z.string(),
  name: z.string(),
  sizeBytes: z.number(),
  isFleeting: z.literal(true).optional(),
});
const reply: z.ZodType<ReplyAddress> = z.looseObject({ platform: z.string(), channelId: z.string() });
const author: z.ZodType<Author> = z.looseObject({ id: z.string(), name: z.string() });

const part = z.discriminatedUnion("state", [
  z.object({ state: z.literal("pending") }),
  z.object({
    state: z.literal("done"),
    messageId: z.string(),
    /** Absent where the platform cannot open it again. */
    attachment: attachment.optional(),
    text: z.string(),
    tokens: z.number().optional(),
  }),
  /** `reason` is a sentence of Markdown. */
  z.object({ state: z.literal("failed"), reason: z.string(), canRetry: z.boolean() }),
  z.object({ state: z.literal("deleted") }),
]);

const job = z.object({
  v: z.literal(1),
  id: z.string(),
  /** Unix milliseconds. */
  at: z.number(),
  /** The conversation that the pictures belong to. */
  conversationId: z.string(),
  /** The entry that the pictures follow in its history; absent: the one before them. */
  after: z.string().optional(),
  /** Its history takes the pictures up. False in what was stored while private pictures shared a conversation with others. */
  isRemembered: z.boolean(),
  reply,
  author,
  prompt: z.string(),
  /** The purpose of the first reference, where a button made the job. */
  change: z.enum(["vary", "upscale"]).optional(),
  model: z.string(),
  ratio: z.string().optional(),
  size: z.string().optional(),
  isSpoiler: z.boolean(),
  references: z.array(attachment),
  parts: z.array(part),
  /** The number of times that people had failed parts drawn again; absent: none. */
  retries: z.number().exactOptional(),
  /** The status message. */
  statusId: z.string().optional(),
  /** Every part has its end, and the status message says so. */
  isOver: z.boolean(),
});

/** A request for pictures and its progress. Survives a crash, and serves the buttons afterwards. */
export type PictureJob = z.infer<typeof job>;

/** One picture of a job. Its number is its place in the job, from 1 on. */
export type PicturePart = z.infer<typeof part>;

/** Undefined for what is damaged, or of another version. */
export function readPictureJob(value: unknown): PictureJob | undefined {
  const { success, data } = job.safeParse(value);
  return success ? data : undefined;
}

/** Names the end of a picture. Another attempt makes the same name. */
export function toEndId({ id, retries = 0 }: PictureJob, number: number): string {
  return `${id}:${number}:${retries}`;
}

/** A picture that can be looked at again, as a reference. */
export function attachmentOf(job: PictureJob, number: number): AttachmentRef | undefined {
  const part = job.parts[number - 1];
  return part?.state === "done" ? part.attachment : undefined;
}

/** The job's pictures, as far as they can be opened. */
export function picturesOf({ parts }: PictureJob): AttachmentRef[] {
  return parts.flatMap((part) => (part.state === "done" ? (part.attachment ?? []) : []));
}

/** The job's references and pictures, as far as they can be opened. */
export function filesOf(job: PictureJob): AttachmentRef[] {
  return [...job.references, ...picturesOf(job)];
}
