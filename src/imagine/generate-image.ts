import { z } from "zod";
import { ASPECT_RATIOS, IMAGE_SIZES } from "../gateway/image-ways.ts";
import type { History } from "../history/history.ts";
import type { AttachmentRef } from "../port/events.ts";
import { defineTool, type Tool, type ToolContext, ToolError } from "../tools/tool.ts";
import type { Imagine } from "./imagine.ts";
import type { PictureJob } from "./picture-job.ts";
import { type ImagineRequest, MAX_COUNT } from "./request.ts";

/** Longer than a job of pictures may take, so that its own words say why it ended. */
const TIMEOUT_MS = 960_000;
/** Calls in one turn: a model in doubt draws on and on, and each picture costs. */
const MAX_CALLS = 3;
/** Entries of the history in which pictures are looked for. */
const MAX_ENTRIES = 30;
const PICTURE_NAME = /\.(png|jpe?g|webp|gif|avif|hei[cf]|tiff?|bmp)$/i;

const toSchema = (maxReferences: number) =>
  z.object({
    prompt: z.string().min(1).max(4_000).describe("What to draw, or what to change: subject, style, detail, limits."),
    ratio: z
      .enum(ASPECT_RATIOS as [string, ...string[]])
      .optional()
      .describe("Width to height. Default: the model's own."),
    size: z
      .enum(IMAGE_SIZES as [string, ...string[]])
      .optional()
      .describe("Default: 1K. Larger only when asked for."),
    count: z.int().min(1).max(MAX_COUNT).default(1).describe("How many pictures."),
    use_references: z
      .array(z.string())
      .max(maxReferences)
      .default([])
      .describe(
        'Pictures of this conversation to start from, each by its file name, or by number counted back from the newest: "last" or "1" is the newest picture, "2" the one before it. Needed to change a picture that is there.',
      ),
  });

export interface GenerateImageDeps {
  imagine: Pick<Imagine, "draw">;
  history: Pick<History, "read">;
  maxReferences: number;
}

/** Lets the chat model draw: each picture appears in the conversation as soon as it is there. */
export function createGenerateImage({ imagine, history, maxReferences }: GenerateImageDeps): Tool {
  return defineTool({
    name: "generate_image",
    description:
      "Draws pictures and shows them in the conversation. Use it whenever somebody asks for a picture, or for a change of one that is there. It answers with what was shown; do not link to the pictures or describe them at length.",
    schema: toSchema(maxReferences),
    timeoutMs: TIMEOUT_MS,
    needs: ["pictures"],
    describeCall: ({ prompt }) => `drawing ${prompt}`,
    async run({ prompt, ratio, size, count, use_references: wanted }, context, signal) {
      const { turn } = context;
      if (turn === undefined) throw new ToolError("Pictures can only be drawn in a conversation.");
      const { author, reply, mustAsk } = turn;
      const { index, id, after } = turn.nextPiece();
      if (index >= MAX_CALLS) {
        throw new ToolError(`Not drawn: one answer may draw ${MAX_CALLS} times. Answer with what is there.`);
      }
      const references = await findReferences(history, context, after, wanted);
      if (references.length > maxReferences) {
        throw new ToolError(`Not drawn: a picture can start from ${maxReferences} pictures at most.`);
      }
      const request: ImagineRequest = {
        prompt,
        count,
        isSpoiler: false,
        ...(ratio && { ratio }),
        ...(size && { size }),
      };
      const place = { conversationId: context.conversationId, after, reply, author };
      const onNotice = (notice: string) => context.onProgress?.(notice === "" ? `drawing ${prompt}` : notice);
      return describeResult(await imagine.draw({ id, ...place, request, references, mustAsk }, onNotice, signal));
    },
  });
}

/** The named pictures, in that order. Throws a `ToolError` for one that is missing or no picture. */
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
  if (newestFirst.length === 0) throw new ToolError("Not drawn: there are no pictures in this conversation.");
  return wanted.map((name) => {
    const found = findReference(newestFirst, name.trim());
    if (found !== undefined) return found;
    const known = newestFirst.slice(0, 8).map((ref, index) => `${index + 1} is ${JSON.stringify(ref.name)}`);
    throw new ToolError(`Not drawn: there is no picture ${JSON.stringify(name)}. Of the newest, ${known.join(", ")}.`);
  });
}

/** A picture of this turn that was not drawn, or a question that could not be stored, is found nowhere. */
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

function describeResult({ prompt, parts }: PictureJob): string {
  const shown = parts.filter(({ state }) => state === "done").length;
  const failures = parts.flatMap((part, index) =>
    part.state === "failed" ? [`Picture ${index + 1} is missing. ${part.reason}`] : [],
  );
  const done =
    shown === 0 ? [] : [`${shown === 1 ? "One picture was" : `${shown} pictures were`} drawn and shown: ${prompt}`];
  return [...done, ...failures].join("\n");
}
