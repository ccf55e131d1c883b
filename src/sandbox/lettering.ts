import type { Rgb } from "./colors.ts";

/** 5 × 7 dot-matrix letters for 0x20 to 0x7e, five columns each, lowest bit on top: a machine may have no font. */
const GLYPHS = Buffer.from(
  [
    "000000000000005f00000007000700147f147f14242a7f2a12231308646236495620500008070300001c2241000041221c00",
    "2a1c7f1c2a08083e080800807030000808080808000060600020100804023e5149453e00427f400072494949462141494d33",
    "1814127f1027454545393c4a49493141211109073649494936464949291e0000140000004034000000081422411414141414",
    "004122140802015909063e415d594e7c1211127c7f494949363e414141227f4141413e7f494949417f090909013e41415173",
    "7f0808087f00417f41002040413f017f081422417f404040407f021c027f7f0408107f3e4141413e7f090909063e4151215e",
    "7f09192946264949493203017f01033f4040403f1f2040201f3f4038403f631408146303047804036159494d43007f414141",
    "0204081020004141417f04020102044040404040000307080020545478407f284444383844444428384444287f3854545418",
    "00087e090218a4a49c787f0804047800447d40002040403d007f1028440000417f40007c047804787c080404783844444438",
    "fc1824241818242418fc7c08040408485454542404043f44243c4040207c1c2040201c3c4030403c44281028444c9090907c",
    "4464544c440008364100000077000000413608000201020402",
  ].join(""),
  "hex",
);
const COLUMNS = 5;
const ROWS = 8;
const FIRST = 0x20;
const LAST = 0x7e;

/** Width of a letter and height of a line in dots, with the space around them. */
const ADVANCE_DOTS = 6;
const LINE_DOTS = 10;

export interface Lettering {
  xPx: number;
  yPx: number;
  dotPx: number;
  color: Rgb;
}

/** Counts the letters in a line and the lines that fit into a space. */
export function fitLetters(widthPx: number, heightPx: number, dotPx: number): { perLine: number; lines: number } {
  return { perLine: Math.floor(widthPx / (ADVANCE_DOTS * dotPx)), lines: Math.floor(heightPx / (LINE_DOTS * dotPx)) };
}

export function heightOfLines(lines: number, dotPx: number): number {
  return lines * LINE_DOTS * dotPx;
}

/** Breaks a text at spaces, long words anywhere; what does not fit ends in three dots. Wide characters take two places. */
export function wrapLetters(text: string, perLine: number, maxLines: number): string[] {
  const lines: string[] = [""];
  for (const word of text.split(/\s+/).flatMap((word) => chop(word, perLine))) {
    const line = lines.at(-1) ?? "";
    if (line === "") lines[lines.length - 1] = word;
    else if (placesOf(line) + 1 + placesOf(word) <= perLine) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  if (lines.length <= maxLines) return lines;
  const last = lines[maxLines - 1] ?? "";
  return [...lines.slice(0, maxLines - 1), `${chop(last, perLine - 3)[0] ?? ""}...`];
}

/** Lines of text as SVG: ASCII in dots, other characters in whatever font the machine has. */
export function drawLetters(lines: readonly string[], { xPx, yPx, dotPx, color }: Lettering): string {
  const dots: string[] = [];
  const others: string[] = [];
  for (const [row, line] of lines.entries()) {
    const top = yPx + row * LINE_DOTS * dotPx;
    let place = 0;
    for (const character of line) {
      const left = xPx + place * ADVANCE_DOTS * dotPx;
      if (isAscii(character)) dots.push(drawGlyph(character, left, top, dotPx));
      else
        others.push(
          `<text x="${left}" y="${top + 7 * dotPx}" font-size="${9 * dotPx}">&#${character.codePointAt(0)};</text>`,
        );
      place += placesOf(character);
    }
  }
  return `<g fill="rgb(${color.join(",")})" font-family="sans-serif"><path d="${dots.join("")}"/>${others.join("")}</g>`;
}

function drawGlyph(character: string, left: number, top: number, dotPx: number): string {
  const start = (character.charCodeAt(0) - FIRST) * COLUMNS;
  let path = "";
  for (let column = 0; column < COLUMNS; column++) {
    const bits = GLYPHS[start + column] ?? 0;
    for (let row = 0; row < ROWS; row++) {
      if ((bits >> row) & 1) path += `M${left + column * dotPx} ${top + row * dotPx}h${dotPx}v${dotPx}h-${dotPx}z`;
    }
  }
  return path;
}

function chop(word: string, perLine: number): string[] {
  const parts: string[] = [""];
  for (const character of word) {
    const part = parts.at(-1) ?? "";
    if (placesOf(part) + placesOf(character) > perLine) parts.push(character);
    else parts[parts.length - 1] = part + character;
  }
  return parts;
}

function placesOf(text: string): number {
  return Array.from(text).reduce((sum, character) => sum + (isAscii(character) ? 1 : 2), 0);
}

function isAscii(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  return code >= FIRST && code <= LAST;
}
