/** A text that can be searched. Results keep the item's other fields. */
export interface Rankable {
  text: string;
  /** Unix milliseconds. Among equal matches, newer texts come first. */
  at: number;
}

/** Collects texts, then ranks them all at once: a word weighs more if fewer of the texts contain it. */
export interface Ranking<T extends Rankable> {
  add(items: readonly T[]): void;
  /** Returns the best matches first. Leaves out texts that contain none of the words. */
  best(maxResults: number): T[];
}

/** Maximum number of characters that are read of each text. A message's topic is usually near its beginning. */
const MAX_CHARS = 4_000;
const MAX_QUERY_TERMS = 32;
/** Longer words also match by this number of first letters: "deployment" finds "deployed". */
const STEM_CHARS = 5;
/** The usual BM25 constants: how fast repeated words lose weight, and how much long texts are penalized. */
const SATURATION = 1.2;
const LENGTH_WEIGHT = 0.75;

/** Two character classes: letters of scripts without spaces between words, and all letters. */
const SPACELESS = "[\\p{scx=Han}\\p{scx=Hira}\\p{scx=Kana}\\p{scx=Thai}\\p{scx=Laoo}\\p{scx=Khmr}\\p{scx=Mymr}]";
const LETTERS = "[\\p{L}\\p{M}\\p{N}]";
const WORDS = new RegExp(`[${SPACELESS}&&${LETTERS}]+|[${LETTERS}--${SPACELESS}]+`, "gv");
const IS_SPACELESS = new RegExp(`^${SPACELESS}`, "v");

/** Ranks texts by how well they match a query. Ignores case, width and accents. Pure. */
export function createRanking<T extends Rankable>(query: string): Ranking<T> {
  const wanted = new Set([...new Set(toTerms(query))].slice(0, MAX_QUERY_TERMS));
  const matches: Array<{ item: T; counts: Map<string, number>; length: number }> = [];
  let texts = 0;
  let totalLength = 0;

  /** Rare terms weigh more. A term in every text weighs almost nothing. */
  function weigh(term: string): number {
    const holders = matches.filter(({ counts }) => counts.has(term)).length;
    return Math.log(1 + (texts - holders + 0.5) / (holders + 0.5));
  }

  return {
    add(items) {
      for (const item of items) {
        const terms = toTerms(item.text);
        texts++;
        totalLength += terms.length;
        const counts = new Map<string, number>();
        for (const term of terms) if (wanted.has(term)) counts.set(term, (counts.get(term) ?? 0) + 1);
        if (counts.size > 0) matches.push({ item, counts, length: terms.length });
      }
    },
    best(maxResults) {
      const weights = new Map([...wanted].map((term) => [term, weigh(term)]));
      const meanLength = Math.max(1, totalLength / Math.max(1, texts));
      const scored = matches.map(({ item, counts, length }) => {
        const damping = SATURATION * (1 - LENGTH_WEIGHT + (LENGTH_WEIGHT * length) / meanLength);
        let score = 0;
        for (const [term, count] of counts) score += ((weights.get(term) ?? 0) * count) / (count + damping);
        return { item, score };
      });
      scored.sort((a, b) => b.score - a.score || b.item.at - a.item.at);
      return scored.slice(0, maxResults).map(({ item }) => item);
    },
  };
}

/** Returns the terms to compare: words, stems of long words, and pairs of characters in scripts without spaces. */
export function toTerms(text: string): string[] {
  const terms: string[] = [];
  for (const [word] of fold(text.slice(0, MAX_CHARS)).matchAll(WORDS)) {
    if (IS_SPACELESS.test(word)) terms.push(...toPairs(word));
    else if (word.length > STEM_CHARS) terms.push(word, `${word.slice(0, STEM_CHARS)}*`);
    else terms.push(word);
  }
  return terms;
}

function toPairs(word: string): string[] {
  const chars = Array.from(word);
  if (chars.length === 1) return chars;
  return chars.slice(1).map((char, index) => `${chars[index] ?? ""}${char}`);
}

/** Removes accents, but not the voicing marks of kana, because they distinguish words. */
function fold(text: string): string {
  return text
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .normalize("NFC")
    .toLowerCase();
}
