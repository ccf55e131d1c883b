import { createPicker, type Picker } from "./picker.ts";
import { writeCode, writeTable } from "./samples.ts";

const SUBJECTS = [
  "The harbour",
  "A patient keeper",
  "The morning ferry",
  "Every old map",
  "The lighthouse",
  "A quiet crew",
  "The north wind",
  "Our small archive",
];
const VERBS = ["keeps", "follows", "remembers", "repairs", "measures", "carries", "questions", "counts"];
const OBJECTS = [
  "the slow tide",
  "a ledger of names",
  "the shape of the coast",
  "three kinds of rope",
  "the lamps along the pier",
  "a letter from the islands",
  "what the fog hides",
  "the price of salt",
];
const ENDINGS = [
  "before the bells ring",
  "without much hurry",
  "as it did last winter",
  "while the gulls argue",
  "with unusual care",
  "so that nobody is late",
  "and writes it down",
  "although it rains",
];
const FILLERS = ["all", "day", "and", "all", "night"];
const HEADINGS = [
  "Arrival",
  "What the water knows",
  "Tools and habits",
  "The long pier",
  "A second look",
  "Weather",
  "Accounts",
  "Departure",
];
const JAPANESE = [
  "港の朝はとても静かです。",
  "灯台の光がゆっくりと海を照らします。",
  "船長は古い地図を広げ、今日の潮を確かめました。",
  "カモメが鳴くころ、町は目を覚まします。",
  "「急がなくていい」と彼女は言いました。",
];

const MAX_WORDS = 100_000;
const WORDS_PER_PARAGRAPH = 45;
const PARAGRAPHS_PER_SECTION = 3;
const MAX_JAPANESE_CHARS = 100_000;

/** Answers "write N words", with "about X", "with code, a table and Japanese", and 「N字」; undefined for others. */
export function writeProse(text: string): string | undefined {
  const chars = /(\d{1,6})\s*(?:文字|字)/.exec(text)?.[1];
  if (chars !== undefined) return writeJapanese(Number(chars));
  const words = readWordCount(text);
  if (words === undefined) return undefined;
  const topic = /\babout (?:an? |the )?([^.,;!?\n]{1,60})/i.exec(text)?.[1];
  const pick = createPicker(text);
  const paragraphs = writeParagraphs(words, pick);
  const blocks = readBlocks(text);
  const sections = toSections(paragraphs, pick);
  const parts = sections.flatMap((section, index) => [section, ...blocks.slice(index, index + 1)]);
  return [`# ${capitalize(topic ?? "at the harbour")}`, ...parts, ...blocks.slice(sections.length)].join("\n\n");
}

function readWordCount(text: string): number | undefined {
  const asked = /\b([\d,]{1,9})[- ]words?\b(?! per second|\/s)/i.exec(text)?.[1];
  if (asked !== undefined) return Math.min(MAX_WORDS, Math.max(1, Number(asked.replaceAll(",", ""))));
  if (/\b(?:write|tell)\b.*\b(?:long)\b/is.test(text)) return 600;
  return /\b(?:write|tell)\b.*\b(?:story|essay|article|text)\b/is.test(text) ? 150 : undefined;
}

/** Paragraphs and, as every third of them, a list. Together they have exactly `words` words. */
function writeParagraphs(words: number, pick: Picker): string[] {
  const paragraphs: string[] = [];
  for (let left = words; left > 0; ) {
    const size = Math.min(left, WORDS_PER_PARAGRAPH);
    const isList = paragraphs.length % PARAGRAPHS_PER_SECTION === PARAGRAPHS_PER_SECTION - 1;
    const sentences = writeSentences(size, pick);
    paragraphs.push(isList ? sentences.map((sentence) => `- ${sentence}`).join("\n") : sentences.join(" "));
    left -= size;
  }
  return paragraphs;
}

function writeSentences(words: number, pick: Picker): string[] {
  const sentences: string[] = [];
  for (let left = words; left > 0; ) {
    const whole = [pick(SUBJECTS), pick(VERBS), pick(OBJECTS), pick(ENDINGS)].join(" ").split(" ");
    // A rest too short for a sentence goes onto this one.
    const rest = left - whole.length;
    const sentence = (rest > 0 && rest <= FILLERS.length ? [...whole, ...FILLERS] : whole).slice(0, left);
    left -= sentence.length;
    const [first = "", second, ...others] = sentence;
    const stressed = sentences.length === 1 && second !== undefined ? [first, `**${second}**`, ...others] : sentence;
    sentences.push(`${stressed.join(" ")}.`);
  }
  return sentences;
}

function toSections(paragraphs: string[], pick: Picker): string[] {
  if (paragraphs.length <= PARAGRAPHS_PER_SECTION) return [paragraphs.join("\n\n")];
  return paragraphs.map((paragraph, index) =>
    index % PARAGRAPHS_PER_SECTION === 0 ? `## ${pick(HEADINGS)}\n\n${paragraph}` : paragraph,
  );
}

function readBlocks(text: string): string[] {
  return [
    ...(/\bcode\b/i.test(text) ? [writeCode(text)] : []),
    ...(/\btables?\b/i.test(text) ? [writeTable(6)] : []),
    ...(/\bjapanese\b|日本語/i.test(text) ? [JAPANESE.join("")] : []),
  ];
}

function writeJapanese(chars: number): string {
  const sentences = JAPANESE.join("");
  const length = Math.min(MAX_JAPANESE_CHARS, Math.max(1, chars));
  return sentences.repeat(Math.ceil(length / sentences.length)).slice(0, length);
}

function capitalize(topic: string): string {
  return topic.trim().replace(/^./u, (first) => first.toUpperCase());
}
