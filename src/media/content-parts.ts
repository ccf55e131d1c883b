import { setImmediate } from "node:timers/promises";
import type { ContentPart } from "../gateway/chunks.ts";
import { toShownFileName } from "./file-problem.ts";
import type { LoadedFile, LoadedFiles } from "./files.ts";
import { FRAME_TOKENS, frameText } from "./text-frame.ts";

export interface ShownFiles {
  parts: ContentPart[];
  tokens: number;
  /** One Markdown sentence for the user about each file that was not used, or only in part. */
  notices: string[];
}

/** The usual cost of 1024 × 1024 pixels in common models. Every image counts as that size. */
const IMAGE_TOKENS = 800;
/** A sentence about a file that is not shown costs at most this many tokens. */
const SENTENCE_TOKENS = 60;
/** A shorter excerpt from a text is useless. */
const MIN_TEXT_TOKENS = 100;

/**
 * Shows a message's files within `maxTokens`: first images, then texts in equal shares. Tokens that one text leaves
 * unused go to the next text. Sentences about omitted files can exceed the limit.
 */
export async function toContentParts({ files, surplus }: LoadedFiles, maxTokens: number): Promise<ShownFiles> {
  const parts: ContentPart[] = [];
  const notices: string[] = [];
  let left = maxTokens;
  let pictures = 0;
  let texts = files.filter((file) => "text" in file).length;
  for (const file of files) {
    if ("url" in file && left >= IMAGE_TOKENS * (pictures + 1)) pictures++;
  }
  left -= pictures * IMAGE_TOKENS;

  function leaveOut(toModel: string, toPerson: string): void {
    parts.push({ type: "text", text: `(${toModel})` });
    notices.push(toPerson);
    left -= SENTENCE_TOKENS;
  }

  function showText(file: Extract<LoadedFile, { text: string }>): void {
    const share = Math.floor(left / texts--);
    if (share < FRAME_TOKENS + Math.min(MIN_TEXT_TOKENS, file.text.length)) {
      leaveOut(
        `The file "${file.name}" is attached, but there is no room to show it. Use read_file to read it.`,
        `\`${file.name}\` didn't fit, so I left it out.`,
      );
      return;
    }
    const frame = frameText(file, { maxTokens: share });
    left -= frame.tokens;
    parts.push({ type: "text", text: frame.text });
    if (frame.isTruncated) notices.push(`\`${file.name}\` is long, so I only read the beginning.`);
    else if (file.leftOut !== undefined) notices.push(`\`${file.name}\`: ${file.leftOut}.`);
  }

  for (const file of files) {
    const { name } = file;
    if ("problem" in file) {
      leaveOut(
        `A file "${name}" was attached but could not be read: it ${file.problem}.`,
        `I couldn't read \`${name}\`: it ${file.problem}.`,
      );
    } else if ("text" in file) {
      showText(file);
      // Let other work run in between, because counting tokens is slow.
      await setImmediate();
    } else if (pictures-- > 0) {
      parts.push({ type: "text", text: `Attached picture "${name}":` });
      parts.push({ type: "image_url", image_url: { url: file.url } });
    } else {
      leaveOut(
        `The image "${name}" is attached, but there is no room to show it.`,
        `\`${name}\` didn't fit, so I left it out.`,
      );
    }
  }
  if (surplus > 0) {
    const count = surplus === 1 ? "1 more file was" : `${surplus} more files were`;
    const sentence = `${count} left out: a message can have at most ${files.length}.`;
    leaveOut(sentence, sentence);
  }
  return { parts, notices, tokens: Math.max(0, maxTokens - left) };
}

export function nameFiles(names: readonly string[]): ShownFiles {
  if (names.length === 0) return { parts: [], notices: [], tokens: 0 };
  const shown = names.map((name) => `"${toShownFileName(name)}"`).join(", ");
  const text = `(Attached here, but no longer shown: ${shown}.)`;
  return { parts: [{ type: "text", text }], notices: [], tokens: Math.ceil(text.length / 2) };
}
