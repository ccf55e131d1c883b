import { createRandom } from "../pacing/random.ts";

/** Names a question in a fault loop: its round, its number, and `e` once it was edited. */
const NAME = /\bq\d+n\d+e?\b/g;

const LETTERS = "abcdefghijklmnop";

export function namesIn(text: string): string[] {
  return text.match(NAME) ?? [];
}

/** A question keeps its script, and its place in the books, when it is edited. */
export function unedited(name: string): string {
  return name.replace(/e$/, "");
}

export function toName(seed: number, index: number): string {
  return `q${seed}n${index}`;
}

/**
 * The upstream's answer to questions that are asked together. It begins with their names and no word stands in it
 * twice, so that a checker sees what is missing, doubled or out of order. One in six needs several messages.
 */
export function answerTo(names: readonly string[]): string {
  const [first = ""] = names;
  const sum = Array.from(first, (character) => character.charCodeAt(0)).reduce((all, code) => all * 31 + code, 7);
  const random = createRandom(sum % 1_000_003);
  const isLong = random.next() < 1 / 6;
  const count = Math.round(isLong ? random.between(300, 650) : random.between(3, 120));
  // Whoever compares messages must not take the middles of two long answers for one: their names tell them apart.
  const mark = `${LETTERS[sum % LETTERS.length]}${unedited(first).replace(/^q\d+n/, "")}x${names.length}`;
  const words = Array.from({ length: count }, (_, index) => toWord(index, mark));
  const code = !isLong && random.next() < 0.3 ? "\n\n```js\nconst answer = 42;\n```" : "";
  return `Answer to ${names.join(" ")}. ${words.join(" ")}${code}`;
}

/** Without what a message boundary, or the end of code that was left open, adds. */
export function squeeze(text: string): string {
  return text.replaceAll(/[\s`]+/g, "");
}

function toWord(index: number, mark: string): string {
  const word = `w${index}${mark}`;
  if (index % 40 === 39) return `${word}.\n\n`;
  if (index % 17 === 16) return `${word}🧪`;
  return index % 11 === 10 ? `wörter${index}${mark}` : word;
}
