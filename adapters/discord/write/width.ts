const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });
/** Printable ASCII, one column each. */
const PLAIN = /^[ -~]*$/;
const UNSEEN = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]*$/u;
/** Scripts and signs whose letters take two columns where every column is the same. */
const WIDE =
  /[\u1100-\u115F\u2E80-\u303E\u3041-\u33FF\u3400-\u4DBF\u4E00-\u9FFF\uA000-\uA4CF\uA960-\uA97F\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6\u{1F000}-\u{1FAFF}\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}|\p{Emoji}\uFE0F/u;

/** How many columns a text takes in a font where letters are as wide as each other, and CJK twice that. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const { segment } of GRAPHEMES.segment(text)) width += widthOfGrapheme(segment);
  return width;
}

/** Breaks a text into lines of at most `maxWidth` columns: between words, and inside a word only when it is longer. */
export function wrap(text: string, maxWidth: number): string[] {
  if (widthOf(text) <= maxWidth) return [text];
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/).flatMap((word) => chop(word, maxWidth))) {
    if (line !== "" && widthOf(line) + 1 + widthOf(word) > maxWidth) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  lines.push(line);
  return lines;
}

/** Pieces of a word that fit. */
function chop(word: string, maxWidth: number): string[] {
  if (widthOf(word) <= maxWidth) return [word];
  const pieces: string[] = [];
  let piece = "";
  let width = 0;
  for (const { segment } of GRAPHEMES.segment(word)) {
    const own = widthOfGrapheme(segment);
    if (piece !== "" && width + own > maxWidth) {
      pieces.push(piece);
      piece = "";
      width = 0;
    }
    piece += segment;
    width += own;
  }
  return [...pieces, piece];
}

function widthOfGrapheme(grapheme: string): number {
  if (WIDE.test(grapheme)) return 2;
  return UNSEEN.test(grapheme) ? 0 : 1;
}
