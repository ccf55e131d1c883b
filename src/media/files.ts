import { mapBounded } from "../concurrency/deadlines.ts";
import type { DocumentText } from "../documents/document.ts";
import { kindOf } from "../documents/kind.ts";
import { readDocument } from "../documents/read-document.ts";
import type { AttachmentRef } from "../port/events.ts";
import { createByteCache } from "./byte-cache.ts";
import type { DecoderProblem, PictureLimits } from "./decoder-job.ts";
import { toShownFileName, toShownSize } from "./file-problem.ts";
import { describePictureProblem, fitPicture } from "./picture.ts";
import { toFileKey } from "./picture-copies.ts";
import { type ImageMimeType, sniffImage } from "./sniff.ts";
import { type FileLimits, type OpenAttachment, useFile } from "./use-file.ts";

export interface ContentLimits extends PictureLimits, FileLimits {
  maxFiles: number;
  concurrency: number;
  /**
   * The limit for all images of one message, which get equal shares of it. A request contains several such messages in
   * base64, and gateways often limit a request to 20 MiB.
   */
  maxSentBytes: number;
}

/** `name` is safe to show. `problem` completes the sentence "it …" about the file. */
export type LoadedFile = { name: string } & ({ url: string } | DocumentText | { problem: string });

export interface LoadedFiles {
  files: LoadedFile[];
  /** Number of further files in the message that were not opened. */
  surplus: number;
}

/** Turns attachments into a form that a model accepts: scaled images, and text for other files. */
export interface Files {
  /** Reads a message's files. An unusable file has a `problem`. Rejects only with the signal's reason. */
  load(refs: readonly AttachmentRef[], owner: string, signal: AbortSignal): Promise<LoadedFiles>;
  clear(): void;
}

const DEFAULT_LIMITS: ContentLimits = {
  maxFiles: 10,
  maxFileBytes: 20 * 1024 * 1024,
  timeoutMs: 30_000,
  concurrency: 2,
  maxPixels: 50_000_000,
  maxSide: 1_568,
  maxSentBytes: 3.5 * 1024 * 1024,
};

/** How long a document's text stays in memory, because the next turn often needs it soon. */
const KEPT_MS = 600_000;
const MAX_KEPT_BYTES = 32 * 1024 * 1024;

export function createFiles(open: OpenAttachment, limits: Partial<ContentLimits> = {}): Files {
  const bounds = { ...DEFAULT_LIMITS, ...limits };
  const tooLarge = `is larger than ${toShownSize(bounds.maxFileBytes)}`;
  let texts = createByteCache<DocumentText>(MAX_KEPT_BYTES, Date.now);

  async function loadOne(ref: AttachmentRef, maxSentBytes: number, owner: string, signal: AbortSignal) {
    const key = toFileKey(ref);
    const known = texts.get(key);
    if (known !== undefined) return known;
    const shared = { ...bounds, maxSentBytes };
    const read = (bytes: Uint8Array) => readFile(ref, bytes, shared, owner, signal);
    const file = await useFile({ ...bounds, ref, open, owner, tooLarge }, read, signal);
    if ("text" in file) texts.set(key, file, file.text.length * 2, Date.now() + KEPT_MS);
    return file;
  }

  return {
    async load(refs, owner, signal) {
      const taken = refs.slice(0, bounds.maxFiles);
      const maxSentBytes = bounds.maxSentBytes / Math.max(1, taken.length);
      const files = await mapBounded(taken, bounds.concurrency, async (ref): Promise<LoadedFile> => {
        const file = await loadOne(ref, maxSentBytes, owner, signal);
        return { name: toShownFileName(ref.name), ...file };
      });
      return { files, surplus: refs.length - taken.length };
    },
    clear() {
      texts = createByteCache<DocumentText>(MAX_KEPT_BYTES, Date.now);
    },
  };
}

async function readFile(
  ref: AttachmentRef,
  bytes: Uint8Array,
  bounds: ContentLimits,
  owner: string,
  signal: AbortSignal,
): Promise<{ url: string } | DocumentText | { problem: string }> {
  if (bytes.byteLength === 0) return { problem: "is empty" };
  // A malicious archive can take long, so only the document process opens archives.
  const mimeType = kindOf(bytes, ref.name) === "packed" ? undefined : await sniffImage(bytes);
  if (mimeType === undefined) return await readDocument(bytes, ref.name, owner, signal);
  const picture = await fitPicture(bytes, mimeType, bounds, owner, signal);
  if ("problem" in picture) return { problem: describeProblem(picture.problem, mimeType, bounds) };
  return { url: `data:${picture.mimeType};base64,${Buffer.from(picture.bytes).toString("base64")}` };
}

function describeProblem(problem: DecoderProblem, mimeType: ImageMimeType, bounds: ContentLimits): string {
  if (problem.kind === "undecodable" && mimeType === "image/heic") {
    return "is a HEIC image, which is not supported; send it as JPEG or PNG";
  }
  return describePictureProblem(problem, bounds);
}
