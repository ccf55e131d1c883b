/**
 * What of a message people could read and then no longer: each time that it came to show less of what it showed, or
 * something else. `states` are its texts, oldest first. Marks count for nothing: they come and go as the text grows. Nor
 * does what tells of the way to an answer: a word about what is waited for, and the steps above the text, in small print.
 */
export function findTakenBack(states: readonly string[]): string[] {
  const texts = states.flatMap((state) => toSaidLetters(state) ?? []);
  return texts.flatMap((is, index) => {
    const was = texts[index - 1] ?? "";
    return is.startsWith(was) ? [] : [`"${was.slice(commonLength(was, is)).slice(0, 60)}" of ${was.length} letters`];
  });
}

/** The letters of the answer that a message shows; undefined while it shows none of it. */
export function toSaidLetters(state: string): string | undefined {
  return /^_[^_]* …_$/.test(state) ? undefined : toLetters(withoutSteps(state));
}

/** What a message says besides the steps above its text, or what they fold into at its end: both in small print. */
export function withoutSteps(state: string): string {
  return state.replaceAll(/^-# .*\n/gm, "");
}

function toLetters(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}]+/gu, "");
}

function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}
