import { z } from "zod";
import { ASPECT_RATIOS, IMAGE_SIZES } from "../gateway/image-ways.ts";
import type { History } from "../history/history.ts";
import type { AttachmentRef } from "../port/events.ts";
import { defineTool, type Tool, type ToolContext, ToolError } from "../tools/tool.ts";
import type { PictureTurn } from "../turn/record.ts";
import type { PicturesWithin } from "./pictures-within.ts";
import { type ImagineRequest, MAX_COUNT } from "./request.ts";

/** Longer than an image turn's own timeout, so the turn fails first and its error gives the reason. */
const TIMEOUT_MS = 960_000;
/** Maximum number of calls in one turn. An unsure model would call again and again, and each image costs money. */
const MAX_CALLS = 3;
/** How many history entries the tool searches for images. */
const MAX_ENTRIES = 30;
const PICTURE_NAME = /\.(png|jpe?g|webp|gif|avif|hei[cf]|tiff?|bmp)$/i;

const toSchema = (maxReferences: number) =>
  z.object({
    prompt: z.string().min(1).max(4_000).describe("What to show or to change: subject, style, details, limits."),
    ratio: z
      .enum(ASPECT_RATIOS as [string, ...string[]])
      .optional()
      .describe("Width to height. Default: the model's own."),
    size: z
      .enum(IMAGE_SIZES as [string, ...string[]])
      .optional()
      .describe("Default: 1K. Choose a larger one only if the user asks for it."),
    count: z.int().min(1).max(MAX_COUNT).default(1).describe("How many images."),
    use_references: z
      .array(z.string())
      .max(maxReferences)
      .default([])
      .describe(
        'Images of this conversation to start from, each by its file name, or by its number counted back from the newest: "last" or "1" is the newest image, "2" the one before it. Required to change an existing image.',
      ),
  });

export interface GenerateImageDeps {
  imagine: Pick<PicturesWithin, "draw">;
  history: Pick<History, "read">;
  maxReferences: number;
}

/**
 * A tool with which the chat model creates images. Each image appears in the conversation as soon as it is finished.
 */
export function createGenerateImage({ imagine, history, maxReferences }: GenerateImageDeps): Tool {
  return defineTool({
    name: "generate_image",
    description:
      "Creates images and shows them in the conversation. Use it whenever a user asks for an image, or for a change to an existing one. It returns what was shown; do not link to the images or describe them at length.",
    schema: toSchema(maxReferences),
    timeoutMs: TIMEOUT_MS,
    needs: ["pictures"],
    describeCall: ({ prompt }) => `creating an image: ${prompt}`,
    async run({ prompt, ratio, size, count, use_references: wanted }, context, signal) {
      const { turn } = context;
      if (turn === undefined) throw new ToolError("Images can only be created in a conversation.");
      const { author, reply, mustAsk } = turn;
      const { index, id, after } = turn.nextPiece();
      if (index >= MAX_CALLS) {
        throw new ToolError(
          `Not created: one answer can create images at most ${MAX_CALLS} times. Answer with the existing ones.`,
        );
      }
      const references = await findReferences(history, context, after, wanted);
      if (references.length > maxReferences) {
        throw new ToolError(`Not created: an image can start from at most ${maxReferences} others.`);
      }
      const request: ImagineRequest = {
        prompt,
        count,
        isSpoiler: false,
        ...(ratio && { ratio }),
        ...(size && { size }),
      };
      const place = { conversationId: context.conversationId, after, reply, author };
      const onNotice = (notice: string) =>
        context.onProgress?.(notice === "" ? `creating an image: ${prompt}` : notice);
      return describeResult(await imagine.draw({ id, ...place, request, references, mustAsk }, onNotice, signal));
    },
  });
}

/** Returns the named images in their order. Throws a `ToolError` for an unknown name or a file that is not an image. */
async function findReferences(
  history: Pick<History, "read">,
  { conversationId }: ToolContext,
  upToId: string | undefined,
  wanted: readonly string[],
): Promise<AttachmentRef[]> {
  if (wanted.length === 0) return [];
  const entries = await readBranch(history, conversationId, upToId);
  const newestFirst = entries
    .flatMap(({ attachments = [] }) => attachments)
    .filter(({ name }) => PICTURE_NAME.test(name))
    .toReversed();
  if (newestFirst.length === 0) throw new ToolError("Not created: this conversation has no images.");
  return wanted.map((name) => {
    const found = findReference(newestFirst, name.trim());
    if (found !== undefined) return found;
    const known = newestFirst.slice(0, 8).map((ref, index) => `${index + 1} is ${JSON.stringify(ref.name)}`);
    throw new ToolError(
      `Not created: there is no image ${JSON.stringify(name)}. Of the newest images, ${known.join(", ")}.`,
    );
  });
}

/** Returns [] if this turn's images failed or its question could not be stored. */
async function readBranch(history: Pick<History, "read">, conversationId: string, upToId: string | undefined) {
  const maxEntries = MAX_ENTRIES;
  const branch = upToId === undefined ? [] : (await history.read(conversationId, { maxEntries, upToId })).entries;
  return branch.length > 0 ? branch : (await history.read(conversationId, { maxEntries })).entries;
}

function findReference(newestFirst: readonly AttachmentRef[], name: string): AttachmentRef | undefined {
  if (/^(last|latest|newest)$/i.test(name)) return newestFirst[0];
  const number = /^#?(\d{1,2})$/.exec(name)?.[1];
  if (number !== undefined) return newestFirst[Number(number) - 1];
  return newestFirst.find((ref) => ref.name.toLowerCase() === name.toLowerCase());
}

function describeResult({ prompt, parts }: PictureTurn): string {
  const shown = parts.filter(({ state }) => state === "done").length;
  const failures = parts.flatMap((part, index) =>
    part.state === "failed" ? [`Image ${index + 1} is missing. ${part.reason}`] : [],
  );
  const done =
    shown === 0 ? [] : [`${shown === 1 ? "One image was" : `${shown} images were`} created and shown: ${prompt}`];
  return [...done, ...failures].join("\n");
}
