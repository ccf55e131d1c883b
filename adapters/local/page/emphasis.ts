import { type MarkedExtension, Tokenizer } from "marked";

const CJK = String.raw`\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Bopo}\u3000-\u303f\uff01-\uff65`;
/**
 * Matches punctuation before marks if a letter of a script without spaces follows, or punctuation of such a script
 * before any letter.
 */
const BEFORE_MARKS = new RegExp(
  String.raw`(?![*_~])[\p{P}\p{S}](?=[*~]+[${CJK}])|(?=[${CJK}])[\p{P}\p{S}](?=[*~]+[\p{L}\p{N}])`,
  "gu",
);
const ENDS_IN_CJK = new RegExp(`[${CJK}]$`, "u");

/**
 * Lets emphasis also end between punctuation and a letter of a script without spaces: `**標題：**正文`. In CommonMark, marks
 * there start emphasis (https://github.com/tats-u/markdown-cjk-friendly).
 */
export function createCjkEmphasis(): MarkedExtension {
  let known = { masked: "", relaxed: "" };

  /**
   * Replaces such punctuation with a letter, so that emphasis can end there. The result is searched but never shown.
   */
  function relax(masked: string): string {
    if (known.masked !== masked) {
      known = { masked, relaxed: masked.replace(BEFORE_MARKS, (mark) => "a".repeat(mark.length)) };
    }
    return known.relaxed;
  }

  /** Makes the parser treat such punctuation like the start of a line, where emphasis can start before punctuation. */
  const toBefore = (before: string) => (ENDS_IN_CJK.test(before) ? "" : before);

  return {
    tokenizer: {
      emStrong(src, masked, before = "") {
        return Tokenizer.prototype.emStrong.call(this, src, relax(masked), toBefore(before));
      },
      del(src, masked, before = "") {
        return Tokenizer.prototype.del.call(this, src, relax(masked), toBefore(before));
      },
    },
  };
}
