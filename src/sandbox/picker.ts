/** Picks one of several. A picker made from the same text picks the same things in the same order. */
export type Picker = (from: readonly string[]) => string;

/** FNV-1a over the text gives the seed, mulberry32 the numbers. */
export function createPicker(text: string): Picker {
  let state = 0x811c9dc5;
  for (const character of text) state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 0x01000193);

  return (from) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    const share = ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    return from[Math.floor(share * from.length)] ?? "";
  };
}
