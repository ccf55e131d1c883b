import { COLORS, type Rgb } from "./colors.ts";
import { createPicker } from "./picker.ts";

interface Room {
  widthPx: number;
  heightPx: number;
}

/** A shape of about `size` around a point, in the current fill. */
type Shape = (x: number, y: number, size: number) => string;

const polygon = (points: readonly (readonly [number, number])[]) =>
  `<polygon points="${points.map((point) => point.join(",")).join(" ")}"/>`;

const star: Shape = (x, y, size) =>
  polygon(
    Array.from({ length: 10 }, (_, index) => {
      const radius = index % 2 === 0 ? size / 2 : size / 5;
      const angle = (index * Math.PI) / 5 - Math.PI / 2;
      return [Math.round(x + radius * Math.cos(angle)), Math.round(y + radius * Math.sin(angle))] as const;
    }),
  );

const circle: Shape = (x, y, size) => `<circle cx="${x}" cy="${y}" r="${size / 2}"/>`;

/** Things that are drawn when the prompt names them. */
const SHAPES: readonly [RegExp, Shape][] = [
  [/\b(?:circle|ball|sun|moon|planet)s?\b|円|太陽|月/i, circle],
  [
    /\b(?:square|box)(?:es|s)?\b|四角/i,
    (x, y, size) => `<rect x="${x - size / 2}" y="${y - size / 2}" width="${size}" height="${size}"/>`,
  ],
  [
    /\b(?:triangle|mountain|tent)s?\b|三角|山/i,
    (x, y, size) =>
      polygon([
        [x, y - size / 2],
        [x + size / 2, y + size / 2],
        [x - size / 2, y + size / 2],
      ]),
  ],
  [/\b(?:star)s?\b|星/i, star],
  [
    /\b(?:house|hut|home)s?\b|家/i,
    (x, y, size) =>
      `<rect x="${x - size / 3}" y="${y - size / 8}" width="${(size * 2) / 3}" height="${size / 1.6}"/>${polygon([
        [x, y - size / 2],
        [x + size / 2, y - size / 8],
        [x - size / 2, y - size / 8],
      ])}`,
  ],
  [
    /\b(?:tree|forest|wood)s?\b|木|森/i,
    (x, y, size) =>
      `<rect x="${x - size / 16}" y="${y}" width="${size / 8}" height="${size / 2}"/>${circle(x, y - size / 8, size / 1.5)}`,
  ],
  [
    /\b(?:boat|ship|sail)s?\b|船/i,
    (x, y, size) =>
      `${polygon([
        [x - size / 2, y + size / 8],
        [x + size / 2, y + size / 8],
        [x + size / 3, y + size / 3],
        [x - size / 3, y + size / 3],
      ])}${polygon([
        [x, y - size / 2],
        [x + size / 3, y],
        [x, y],
      ])}`,
  ],
];

const NIGHT = /\b(?:night|dark|midnight)\b|夜/i;
const SKIES = ["teal", "blue", "orange", "pink", "purple", "beige"] as const;
/** Colours of the land: all but the navy of the band at the foot. */
const LANDS = ["green", "brown", "teal", "grey", "purple"] as const;

/** The place and size of the prompt's subject, take by take: aside and above as shares of the picture. */
const PLACES = [
  { aside: 0, above: 0.36, scale: 1 },
  { aside: -0.2, above: 0.3, scale: 0.7 },
  { aside: 0.18, above: 0.4, scale: 1.25 },
  { aside: 0.22, above: 0.26, scale: 0.6 },
  { aside: -0.16, above: 0.42, scale: 1.1 },
] as const;

/** A sky, hills and what the prompt names, in its colours. Another take has other hills, places and sky. */
export function drawScene(prompt: string, { widthPx, heightPx }: Room, take: number): string {
  const pick = createPicker(`${prompt} ${take}`);
  const place = PLACES[(take - 1) % PLACES.length] ?? PLACES[0];
  const named = namedColors(prompt);
  const turn = (take - 1) % SKIES.length;
  const skies = [...SKIES.slice(turn), ...SKIES.slice(0, turn)];
  const sky = NIGHT.test(prompt) ? "navy" : createPicker(prompt)(skies);
  const size = Math.min(widthPx, heightPx) * 0.42 * place.scale;
  const shapes = namedShapes(prompt);
  const drawn = shapes.map(({ shape, at }, index, all) => {
    const color = closestTo(named, at) ?? "yellow";
    const aside = (index + 1) / (all.length + 1) + place.aside / all.length;
    return `<g fill="${fillOf(color)}">${shape(widthPx * aside, heightPx * place.above, size / Math.sqrt(all.length))}</g>`;
  });
  const hills = [0.55, 0.7, 0.85].map((height, index) => {
    const color = named[index + shapes.length]?.name ?? pick(LANDS);
    return `<path fill="${fillOf(color)}" opacity="${0.6 + index * 0.2}" d="${drawHill(widthPx, heightPx, height, Number(pick(["1", "2", "3"])))}"/>`;
  });
  return [
    `<defs><linearGradient id="sky" x2="0" y2="1"><stop stop-color="${fillOf(sky)}"/><stop offset="1" stop-color="${fillOf("white")}"/></linearGradient></defs>`,
    `<rect width="${widthPx}" height="${heightPx}" fill="url(#sky)"/>`,
    ...hills.slice(0, 1),
    ...drawn,
    ...hills.slice(1),
  ].join("");
}

export function toRgb(color: Rgb): string {
  return `rgb(${color.join(",")})`;
}

function drawHill(widthPx: number, heightPx: number, height: number, waves: number): string {
  const y = heightPx * height;
  const step = widthPx / (2 * waves);
  const curves = Array.from({ length: 2 * waves }, (_, index) => {
    const bend = (index % 2 === 0 ? -1 : 1) * heightPx * 0.12;
    return `Q${step * (index + 0.5)} ${y + bend} ${step * (index + 1)} ${y}`;
  });
  return `M0 ${y}${curves.join("")}V${heightPx}H0Z`;
}

interface NamedColor {
  name: string;
  at: number;
}

/** Colours in the order the prompt names them. */
function namedColors(prompt: string): NamedColor[] {
  return Object.keys(COLORS)
    .map((name) => ({ name, at: prompt.search(new RegExp(`\\b${name}\\b`, "i")) }))
    .filter(({ at }) => at !== -1)
    .toSorted((a, b) => a.at - b.at);
}

/** Things in the order the prompt names them; a star where it names none. */
function namedShapes(prompt: string): { shape: Shape; at: number }[] {
  const found = SHAPES.map(([words, shape]) => ({ shape, at: prompt.search(words) })).filter(({ at }) => at !== -1);
  return found.length > 0 ? found.toSorted((a, b) => a.at - b.at) : [{ shape: star, at: 0 }];
}

/** The colour named nearest to a word: "a red house", "the house in red". */
function closestTo(colors: readonly NamedColor[], at: number): string | undefined {
  return colors.toSorted((a, b) => Math.abs(a.at - at) - Math.abs(b.at - at))[0]?.name;
}

function fillOf(name: string): string {
  return toRgb(COLORS[name] ?? [0, 0, 0]);
}
