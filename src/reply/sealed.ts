import { createHash } from "node:crypto";
import { z } from "zod";
import type { Draft } from "../port/sink.ts";
import { healMarkdown } from "../text/heal.ts";
import type { Part } from "../text/split.ts";

/** The first messages of a reply, where the platform takes no change of them any more: the rest stands behind them. */
export type Sealed = z.infer<typeof sealed>;

export const sealed = z.object({
  count: z.number(),
  /** How much of the text they show, in UTF-16 units of the text as it is shown. */
  shown: z.number(),
  /** Which text that was: an answer that is made again may be another one. */
  mark: z.string(),
});

/** Which text it is, without the text. */
export function toTextMark(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}

/** The place behind as much of a text as its messages show; 0 where they show another one. */
export function findPlaceBehind(text: string, { shown, mark }: Pick<Sealed, "shown" | "mark">): number {
  return shown <= text.length && toTextMark(text.slice(0, shown)) === mark ? shown : 0;
}

/** As much of the end of what is shown as must be found in the text. */
const COMPARED = 48;

/** The place in `text` behind what a draft shows, which was made of this part of it. */
export function findEndOf(draft: Draft, part: Part, text: string): number {
  const { markdown, source = markdown.slice(0, markdown.length - part.closingLength) } = draft;
  const shown = source.slice(0, countCommon(source, markdown)).trimEnd();
  for (let end = part.end; end > part.start; end -= 1) {
    if (shown.endsWith(text.slice(Math.max(part.start, end - COMPARED), end).trimStart())) {
      if (text.slice(part.start, end).trim() === "") break;
      return end;
    }
  }
  return part.start;
}

/** The place in `text` behind so many units of the source of a draft, which was made of this part of it. */
export function findPlaceAt(draft: Draft, part: Part, text: string, length: number): number {
  const source = draft.source ?? draft.markdown.slice(0, draft.markdown.length - part.closingLength);
  const content = text.slice(part.start, part.end);
  const lead = content.length - content.trimStart().length;
  const repeated = Math.max(0, source.length - content.trim().length);
  // What has only begun was not shown.
  const written = source.slice(0, length);
  const shown = countCommon(written, healMarkdown(written));
  return part.start + lead + Math.max(0, shown - repeated);
}

function countCommon(one: string, other: string): number {
  let count = 0;
  while (count < one.length && one[count] === other[count]) count += 1;
  return count;
}
