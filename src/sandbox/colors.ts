export type Rgb = readonly [red: number, green: number, blue: number];

/** Colours with a plain name, for describing pictures and for drawing what a prompt names. */
export const COLORS: Readonly<Record<string, Rgb>> = {
  black: [16, 16, 16],
  white: [250, 250, 250],
  grey: [128, 128, 128],
  red: [205, 45, 45],
  orange: [240, 140, 40],
  yellow: [245, 215, 60],
  green: [50, 150, 70],
  teal: [30, 140, 140],
  blue: [45, 90, 200],
  navy: [25, 35, 90],
  purple: [125, 60, 160],
  pink: [240, 140, 180],
  brown: [120, 75, 45],
  beige: [225, 205, 170],
};

const MIN_SHARE = 0.05;
const MAX_NAMED = 3;

/** The main colours of a picture with their share: `red (62 %), white (30 %)`. `pixels` are RGBA. */
export function describeColors(pixels: Uint8Array): string {
  const counts = new Map<string, number>();
  for (let at = 0; at + 3 < pixels.length; at += 4) {
    if ((pixels[at + 3] ?? 0) < 128) continue;
    const name = nearestName([pixels[at] ?? 0, pixels[at + 1] ?? 0, pixels[at + 2] ?? 0]);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const total = counts.values().reduce((sum, count) => sum + count, 0);
  if (total === 0) return "transparent";
  const shares = [...counts]
    .map(([name, count]) => ({ name, share: count / total }))
    .toSorted((a, b) => b.share - a.share);
  return shares
    .filter(({ share }, index) => index === 0 || (share >= MIN_SHARE && index < MAX_NAMED))
    .map(({ name, share }) => `${name} (${Math.round(share * 100)} %)`)
    .join(", ");
}

function nearestName([red, green, blue]: Rgb): string {
  let best = { name: "black", distance: Number.POSITIVE_INFINITY };
  for (const [name, [r, g, b]] of Object.entries(COLORS)) {
    const distance = (red - r) ** 2 + (green - g) ** 2 + (blue - b) ** 2;
    if (distance < best.distance) best = { name, distance };
  }
  return best.name;
}
