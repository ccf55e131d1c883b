import { createRandom } from "../pacing/random.ts";

/** A question's name: its seed and its number, with `e` after an edit. */
const NAME = /\bq\d+n\d+e?\b/g;

const LETTERS = "abcdefghijklmnop";

export function namesIn(text: string): string[] {
  return text.match(NAME) ?? [];
}

/** Removes the `e`, because an edited question keeps its script and counts as the same question. */
export function unedited(name: string): string {
  return name.replace(/e$/, "");
}

export function toName(seed: number, index: number): string {
  return `q${seed}n${index}`;
}

/**
 * The upstream's answer to questions that are asked together. It starts with their names and never repeats a word, so
 * that missing, repeated and reordered text can be found. One answer in six needs several messages.
 */
export function answerTo(names: readonly string[]): string {
  const [first = ""] = names;
  const sum = Array.from(first, (character) => character.charCodeAt(0)).reduce((all, code) => all * 31 + code, 7);
  const random = createRandom(sum % 1_000_003);
  const isLong = random.next() < 1 / 6;
  const count = Math.round(isLong ? random.between(300, 650) : random.between(3, 120));
  // Makes the words of each answer unique, so that even the middles of two long answers differ.
  const mark = `${LETTERS[sum % LETTERS.length]}${unedited(first).replace(/^q\d+n/, "")}x${names.length}`;
  const words = Array.from({ length: count }, (_, index) => toWord(index, mark));
  const code = !isLong && random.next() < 0.3 ? "\n\n```js\nconst answer = 42;\n```" : "";
  return `Answer to ${names.join(" ")}. ${words.join(" ")}${code}`;
}

/** Removes text that comes from message boundaries and from closing open code blocks. */
export function squeeze(text: string): string {
  return text.replaceAll(/[\s`]+/g, "");
}

function toWord(index: number, mark: string): string {
  const word = `w${index}${mark}`;
  if (index % 40 === 39) return `${word}.\n\n`;
  if (index % 17 === 16) return `${word}🧪`;
  return index % 11 === 10 ? `wörter${index}${mark}` : word;
}
