export type Rgb = readonly [red: number, green: number, blue: number];

/** Colours by name. The practice model finds them in prompts and describes images with them. */
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

/** Names the most frequent colour. `pixels` are RGBA. */
export function findMainColor(pixels: Uint8Array): string {
  const counts = new Map<string, number>();
  for (let at = 0; at + 3 < pixels.length; at += 4) {
    if ((pixels[at + 3] ?? 0) < 128) continue;
    const name = nearestName([pixels[at] ?? 0, pixels[at + 1] ?? 0, pixels[at + 2] ?? 0]);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const [most] = [...counts].toSorted(([, one], [, other]) => other - one);
  return most?.[0] ?? "transparent";
}

function nearestName([red, green, blue]: Rgb): string {
  const distances = Object.entries(COLORS).map(([name, [r, g, b]]) => ({
    name,
    distance: (red - r) ** 2 + (green - g) ** 2 + (blue - b) ** 2,
  }));
  return distances.reduce((best, other) => (other.distance < best.distance ? other : best)).name;
}
