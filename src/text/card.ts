/** A card, alert or preview of another app, in the platform's markup. */
export interface Card {
  /** The text above the card. */
  before?: string | undefined;
  /** 24-bit RGB. The color of an alert shows its severity. */
  color?: number | undefined;
  author?: string | undefined;
  title?: string | undefined;
  text?: string | undefined;
  fields?: ReadonlyArray<{ name: string; value: string }>;
  /** Everything else on the card. Each item is shown on its own lines. */
  more?: readonly string[];
  footer?: string | undefined;
  /** Unix milliseconds. */
  at?: number | undefined;
}

export function describeCard({ before, color, author, title, text, fields = [], more = [], footer, at }: Card): string {
  const time = at === undefined || Number.isNaN(new Date(at).getTime()) ? undefined : toMinute(at);
  const body = [
    joinParts(author, title),
    text,
    ...fields.map(({ name, value }) => describeField(name.trim(), value.trim())),
    ...more,
    joinParts(footer, time),
  ].filter((part) => part?.trim());
  if (body.length === 0) return before?.trim() ?? "";
  const name = color === undefined ? undefined : nameColor(color);
  const [head = "", ...rest] = body;
  return [before?.trim(), name === undefined ? head : `(${name}) ${head}`, ...rest].filter(Boolean).join("\n");
}

function describeField(name: string, value: string): string {
  if (name === "" || value === "") return name || value;
  return value.includes("\n") ? `${name}:\n${value}` : `${name}: ${value}`;
}

function joinParts(...parts: ReadonlyArray<string | undefined>): string {
  return parts.filter((part) => part?.trim()).join(" · ");
}

function toMinute(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** The names of hues, each with the largest hue, in degrees, that has this name. */
const HUES: ReadonlyArray<[until: number, name: string]> = [
  [15, "red"],
  [45, "orange"],
  [70, "yellow"],
  [170, "green"],
  [260, "blue"],
  [320, "purple"],
  [335, "pink"],
  [360, "red"],
];

/** Returns the common name of a color; undefined for a shade of gray, because gray means nothing. */
export function nameColor(rgb: number): string | undefined {
  const [red, green, blue] = [rgb >> 16, rgb >> 8, rgb].map((part) => (part & 255) / 255) as [number, number, number];
  const most = Math.max(red, green, blue);
  const range = most - Math.min(red, green, blue);
  if (range < 0.12) return undefined;
  const sixth =
    most === red ? (green - blue) / range : most === green ? 2 + (blue - red) / range : 4 + (red - green) / range;
  const hue = (sixth * 60 + 360) % 360;
  return HUES.find(([until]) => hue <= until)?.[1] ?? "red";
}
