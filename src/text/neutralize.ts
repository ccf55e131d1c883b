/** Matches a subdivision's flag, such as Scotland's: a black flag, its code in tag characters, and the closing tag. */
const TAG_FLAG = /\u{1F3F4}[\u{E0030}-\u{E0039}\u{E0061}-\u{E007A}]{3,6}\u{E007F}/u;
/** Matches other systems' line breaks. Each becomes "\n". */
const LINE_BREAK = /\r\n?|[\u2028\u2029]/u;
/**
 * Matches invisible characters with an effect: control characters except tab and line feed, bidi marks, byte order
 * marks, and lone surrogates. Also matches tags and variation selectors that follow no base character, because they can
 * contain hidden text.
 */
const UNSEEN =
  /(?![\t\n])\p{Cc}|\p{Cs}|[\u202A-\u202E\u2066-\u206F\uFEFF\uFFF9-\uFFFB\u{E0000}-\u{E007F}]|(?<!\p{Script=Han})[\u{E0100}-\u{E01EF}]/u;

const NEUTRALIZED = new RegExp(`(${TAG_FLAG.source})|(${LINE_BREAK.source})|${UNSEEN.source}`, "gu");

/** Removes characters that can deceive a reader or make a platform reject the text. Idempotent. */
export function neutralize(text: string): string {
  return text.replace(NEUTRALIZED, (_, flag: string | undefined, lineBreak: string | undefined) => {
    if (flag !== undefined) return flag;
    return lineBreak === undefined ? "" : "\n";
  });
}
