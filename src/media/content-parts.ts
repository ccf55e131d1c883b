import { mapBounded } from "../concurrency/deadlines.ts";
import type { ContentPart } from "../gateway/chunks.ts";
import type { AttachmentRef } from "../port/events.ts";
import { toShownFileName, toShownSize } from "./file-problem.ts";
import { describePictureProblem, fitPicture, type PictureLimits, type PictureProblem } from "./picture.ts";
import { type ImageMimeType, sniffType } from "./sniff.ts";
import { frameTexts, type LoadedText } from "./text-frame.ts";
import { type FileLimits, type OpenAttachment, useFile } from "./use-file.ts";

export interface ContentLimits extends PictureLimits, FileLimits {
  maxFiles: number;
  concurrency: number;
  /**
   * For the pictures of a message together; each may use an equal share. A conversation shows several such messages
   * at once, as base64, and gateways bound the size of a request, often at 20 MiB.
   */
  maxSentBytes: number;
  /** For all text files of a message together; estimated. */
  maxTextTokens: number;
}

export interface LoadedAttachments {
  /** In the order of the files. */
  parts: ContentPart[];
  /** One sentence of Markdown, for the person, on each file that could not be used, or not whole. */
  notices: string[];
}

const DEFAULT_LIMITS: ContentLimits = {
  maxFiles: 10,
  maxFileBytes: 20 * 1024 * 1024,
  timeoutMs: 30_000,
  concurrency: 2,
  maxPixels: 50_000_000,
  maxSide: 1_568,
  maxSentBytes: 3.5 * 1024 * 1024,
  maxTextTokens: 24_000,
};

/** `problem` completes the sentence that begins with the file's name, "it …". */
type LoadedFile = { type: "picture"; url: string } | LoadedText | { problem: string };

/**
 * Turns the files of a message into what a model reads. A file that cannot be used becomes a notice for the person
 * and a line that tells the model; it never makes this reject. `owner` as in `decode`. Rejects only with the signal's
 * reason.
 */
export async function loadContentParts(
  refs: readonly AttachmentRef[],
  open: OpenAttachment,
  owner: string,
  signal: AbortSignal,
  limits: Partial<ContentLimits> = {},
): Promise<LoadedAttachments> {
  const bounds = { ...DEFAULT_LIMITS, ...limits };
  const taken = refs.slice(0, bounds.maxFiles);
  const share = { ...bounds, maxSentBytes: bounds.maxSentBytes / Math.max(1, taken.length) };
  const tooLarge = `is larger than ${toShownSize(bounds.maxFileBytes)}`;
  const files = await mapBounded(taken, bounds.concurrency, (ref) => {
    const read = (bytes: Uint8Array) => readFile(ref, bytes, share, owner, signal);
    return useFile({ ...bounds, ref, open, owner, tooLarge }, read, signal);
  });
  const { parts, notices } = toParts(taken, files, bounds);

  const leftOut = refs.length - taken.length;
  if (leftOut > 0) {
    const count = leftOut === 1 ? "1 more file was" : `${leftOut} more files were`;
    const sentence = `${count} left out: a message may bring ${bounds.maxFiles}.`;
    notices.push(sentence);
    parts.push({ type: "text", text: `(${sentence})` });
  }
  return { parts, notices };
}

function toParts(refs: readonly AttachmentRef[], files: LoadedFile[], bounds: ContentLimits): LoadedAttachments {
  const parts: ContentPart[] = [];
  const notices: string[] = [];
  const texts = files.filter((file) => "type" in file && file.type === "text");
  const framed = new Map(frameTexts(texts, bounds.maxTextTokens).map((frame, index) => [texts[index], frame]));

  for (const [index, file] of files.entries()) {
    const name = toShownFileName(refs[index]?.name ?? "");
    if ("problem" in file) {
      parts.push({ type: "text", text: `(A file "${name}" was attached but could not be read: it ${file.problem}.)` });
      notices.push(`\`${name}\` could not be read: it ${file.problem}.`);
    } else if (file.type === "picture") {
      parts.push({ type: "text", text: `Attached picture "${name}":` });
      parts.push({ type: "image_url", image_url: { url: file.url } });
    } else {
      const frame = framed.get(file);
      if (frame === undefined) continue;
      parts.push({ type: "text", text: frame.text });
      if (frame.cut) notices.push(`\`${name}\` is long: only its beginning was read.`);
    }
  }
  return { parts, notices };
}

const UNKNOWN_KIND =
  "is neither a picture of a kind that can be read (PNG, JPEG, WebP, GIF, AVIF, HEIC) nor text in UTF-8 or UTF-16";

async function readFile(
  ref: AttachmentRef,
  bytes: Uint8Array,
  bounds: ContentLimits,
  owner: string,
  signal: AbortSignal,
): Promise<LoadedFile> {
  if (bytes.byteLength === 0) return { problem: "is empty" };
  const sniffed = await sniffType(bytes);
  if (sniffed === undefined) return { problem: UNKNOWN_KIND };
  if (sniffed.kind === "text") return { type: "text", name: toShownFileName(ref.name), text: sniffed.text };
  if (sniffed.kind === "document") {
    return { problem: "is a PDF, a kind that cannot be read yet; paste its text instead" };
  }
  const picture = await fitPicture(bytes, sniffed.mimeType, bounds, owner, signal);
  if ("problem" in picture) return { problem: describeProblem(picture.problem, sniffed.mimeType, bounds) };
  return { type: "picture", url: `data:${picture.mimeType};base64,${Buffer.from(picture.bytes).toString("base64")}` };
}

function describeProblem(problem: PictureProblem, mimeType: ImageMimeType, bounds: ContentLimits): string {
  if (problem.kind === "undecodable" && mimeType === "image/heic") {
    return "is a HEIC picture, a kind that cannot be read here; send it as JPEG or PNG";
  }
  return describePictureProblem(problem, bounds);
}
