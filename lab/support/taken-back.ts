/**
 * Finds text that people could read and that later disappeared or changed. `states` are a message's texts, oldest
 * first. Ignores formatting marks, because they come and go while the text grows. Also ignores notices about waiting,
 * and the steps in small print above the text.
 */
export function findTakenBack(states: readonly string[]): string[] {
  const texts = states.flatMap((state) => toSaidLetters(state) ?? []);
  return texts.flatMap((is, index) => {
    const was = texts[index - 1] ?? "";
    return is.startsWith(was) ? [] : [`"${was.slice(commonLength(was, is)).slice(0, 60)}" of ${was.length} letters`];
  });
}

/** Returns the letters of the answer in a message; undefined if no part of the answer is visible yet. */
export function toSaidLetters(state: string): string | undefined {
  return /^_[^_]* …_$/.test(state) ? undefined : toLetters(withoutSteps(state));
}

/** Returns a message's text without its small print: the steps and their summary. */
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
