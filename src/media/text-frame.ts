import { createHash } from "node:crypto";
import { estimateTokenCount, sliceByTokens } from "tokenx";

export interface LoadedText {
  type: "text";
  /** Safe to show, see `toShownFileName`. */
  name: string;
  text: string;
}

export interface FramedText {
  text: string;
  /** Only the beginning of the file is in it. */
  cut: boolean;
}

/** Estimated tokens rarely cover more characters than this; white space, which counts as none, would. */
const MAX_CHARS_PER_TOKEN = 8;

/**
 * Puts files into frames a file cannot break out of: the mark of a frame is a digest of what is inside, so no
 * content can hold its own mark. The files share `maxTokens`: each may use an equal part of what is left, and what
 * it does not need goes to those after it. Pure, so that the same files make the same request.
 */
export function frameTexts(texts: readonly LoadedText[], maxTokens: number): FramedText[] {
  let left = maxTokens;
  return texts.map(({ name, text }, index) => {
    const shown = cutToTokens(text, Math.floor(left / (texts.length - index)));
    left -= estimateTokenCount(shown);
    const cut = shown.length < text.length;
    const clean = removeControls(shown);
    const mark = createHash("sha256").update(clean).digest("hex").slice(0, 16);
    const note = cut ? `\n[${mark}: cut here, ${shown.length} of ${text.length} characters are shown]` : "";
    return { cut, text: `<file name="${name}" mark="${mark}">\n${clean}${note}\n</file mark="${mark}">` };
  });
}

function cutToTokens(text: string, maxTokens: number): string {
  const bounded = text.slice(0, maxTokens * MAX_CHARS_PER_TOKEN);
  const fits = estimateTokenCount(bounded) <= maxTokens;
  const shown = fits ? bounded : sliceByTokens(bounded, 0, maxTokens);
  // A surrogate pair cut in two leaves half a character.
  return shown.replace(/[\uD800-\uDBFF]$/, "");
}

/** Everything of C0 and C1 but line breaks and tabs: terminal codes in a log mean nothing to a model. */
function removeControls(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(/[\p{Cc}--[\n\t]]/gv, "");
}
