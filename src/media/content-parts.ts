import { setImmediate } from "node:timers/promises";
import type { ContentPart } from "../gateway/chunks.ts";
import { toShownFileName } from "./file-problem.ts";
import type { LoadedFile, LoadedFiles } from "./files.ts";
import { FRAME_TOKENS, frameText } from "./text-frame.ts";

export interface ShownFiles {
  /** In the order of the files. */
  parts: ContentPart[];
  tokens: number;
  /** One sentence of Markdown, for the person, on each file that could not be used, or not whole. */
  notices: string[];
}

/** An image of any size counts as much as 1024 × 1024 pixels cost the common models, about. */
const IMAGE_TOKENS = 800;
/** A sentence on a file that is not shown costs this, at most. */
const SENTENCE_TOKENS = 60;
/** Less of a text than this says nothing. */
const MIN_TEXT_TOKENS = 100;

/**
 * Shows a message's files within `maxTokens`: pictures first, then texts in equal shares, where a share's rest goes to
 * the next. Sentences on files left out may exceed it.
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
        `The file "${file.name}" is attached, and there is no room to show it; read_file reads it.`,
        `\`${file.name}\` was left out: there is no room for it.`,
      );
      return;
    }
    const frame = frameText(file, { maxTokens: share });
    left -= frame.tokens;
    parts.push({ type: "text", text: frame.text });
    if (frame.cut) notices.push(`\`${file.name}\` is long: only its beginning was read.`);
    else if (file.leftOut !== undefined) notices.push(`Of \`${file.name}\` ${file.leftOut}.`);
  }

  for (const file of files) {
    const { name } = file;
    if ("problem" in file) {
      leaveOut(
        `A file "${name}" was attached but could not be read: it ${file.problem}.`,
        `\`${name}\` could not be read: it ${file.problem}.`,
      );
    } else if ("text" in file) {
      showText(file);
      // Counting tokens takes its time: lets others go on.
      await setImmediate();
    } else if (pictures-- > 0) {
      parts.push({ type: "text", text: `Attached picture "${name}":` });
      parts.push({ type: "image_url", image_url: { url: file.url } });
    } else {
      leaveOut(
        `The picture "${name}" is attached, and there is no room to show it.`,
        `\`${name}\` was left out: there is no room for it.`,
      );
    }
  }
  if (surplus > 0) {
    const count = surplus === 1 ? "1 more file was" : `${surplus} more files were`;
    const sentence = `${count} left out: a message may bring ${files.length}.`;
    leaveOut(sentence, sentence);
  }
  return { parts, notices, tokens: Math.max(0, maxTokens - left) };
}

/** Names files that are not shown any more. */
export function nameFiles(names: readonly string[]): ShownFiles {
  if (names.length === 0) return { parts: [], notices: [], tokens: 0 };
  const shown = names.map((name) => `"${toShownFileName(name)}"`).join(", ");
  const text = `(Attached here, and not shown any more: ${shown}.)`;
  return { parts: [{ type: "text", text }], notices: [], tokens: Math.ceil(text.length / 2) };
}
