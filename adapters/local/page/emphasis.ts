import { type MarkedExtension, Tokenizer } from "marked";

const CJK = String.raw`\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Bopo}\u3000-\u303f\uff01-\uff65`;
/**
 * Matches punctuation before emphasis marks and a letter, if the punctuation or the letter belongs to a script without
 * spaces.
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

  /** Replaces punctuation before marks with a letter, so that emphasis can end there. Only searched, never shown. */
  function relax(masked: string): string {
    if (known.masked !== masked) {
      known = { masked, relaxed: masked.replace(BEFORE_MARKS, (mark) => "a".repeat(mark.length)) };
    }
    return known.relaxed;
  }

  /** After a script without spaces, emphasis can start before punctuation, as at the start of a line. */
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
