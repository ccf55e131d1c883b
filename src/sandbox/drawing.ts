import { randomBytes } from "node:crypto";
import { decode } from "../media/decoder.ts";
import type { Inset } from "../media/decoder-job.ts";
import { COLORS, type Rgb } from "./colors.ts";
import type { ASPECT_RATIOS, IMAGE_SIZES, SandboxImageRequest } from "./image-request.ts";
import type { Picture } from "./pictures.ts";

export interface DrawingOptions {
  prompt: string;
  references: readonly Picture[];
  aspectRatio: (typeof ASPECT_RATIOS)[number];
  imageSize: (typeof IMAGE_SIZES)[number];
}

interface Size {
  widthPx: number;
  heightPx: number;
}

const SIDE_PX: Readonly<Record<SandboxImageRequest["imageSize"], number>> = { "1K": 1024, "2K": 2048, "4K": 4096 };
const DISCS = 6;
const WHITE: Rgb = [255, 255, 255];

/** Returns a width and a height in exactly this ratio, with about as many pixels as a square of this size. */
export function toPixelSize(aspectRatio: DrawingOptions["aspectRatio"], imageSize: DrawingOptions["imageSize"]): Size {
  const [width = 1, height = 1] = aspectRatio.split(":").map(Number);
  const unit = Math.floor(SIDE_PX[imageSize] / Math.sqrt(width * height));
  return { widthPx: width * unit, heightPx: height * unit };
}

/** Creates a PNG with discs in the prompt's colours and with the references in frames. Each image looks different. */
export async function drawPicture(options: DrawingOptions, signal: AbortSignal): Promise<Buffer> {
  const size = toPixelSize(options.aspectRatio, options.imageSize);
  const [svg, insets] = [drawScene(options.prompt, size), toInsets(options.references, size)];
  return Buffer.from(await decode({ type: "draw", svg, insets }, "sandbox", signal));
}

function drawScene(prompt: string, { widthPx, heightPx }: Size): string {
  const dice = randomBytes(4 * DISCS + 1);
  const share = (index: number) => (dice[index] ?? 0) / 255;
  const names = Object.keys(COLORS);
  const named = names.filter((name) => new RegExp(`\\b${name}\\b`, "i").test(prompt));
  const colorAt = (index: number, from: readonly string[]) =>
    toRgb(COLORS[from[Math.floor(share(index) * (from.length - 0.01))] ?? ""] ?? WHITE);
  const discs = Array.from({ length: DISCS }, (_, index) => {
    const at = 4 * index;
    const [x, y] = [Math.round(share(at) * widthPx), Math.round(share(at + 1) * heightPx)];
    const radius = Math.round((0.06 + 0.2 * share(at + 2)) * Math.min(widthPx, heightPx));
    const color = colorAt(at + 3, named.length > 0 && index % 2 === 0 ? named : names);
    return `<circle cx="${x}" cy="${y}" r="${radius}" fill="${color}"/>`;
  });
  const sky = /\b(?:night|dark)\b/i.test(prompt) ? toRgb(COLORS["navy"] ?? WHITE) : colorAt(4 * DISCS, names);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${widthPx}" height="${heightPx}">`,
    `<rect width="${widthPx}" height="${heightPx}" fill="${sky}"/>`,
    ...discs,
    "</svg>",
  ].join("");
}

function toRgb(color: Rgb): string {
  return `rgb(${color.join(",")})`;
}

/** Arranges the references in a row at the bottom, in the order of the request. */
function toInsets(pictures: readonly Picture[], { widthPx, heightPx }: Size): Inset[] {
  const borderPx = Math.round(Math.min(widthPx, heightPx) / 150);
  const stepPx = Math.floor(Math.min(0.4 * heightPx, widthPx / Math.max(2, pictures.length)));
  const sidePx = stepPx - 2 * borderPx;
  return pictures.map(({ bytes }, index) => ({
    bytes,
    sidePx,
    borderPx,
    leftPx: borderPx + index * stepPx,
    topPx: heightPx - stepPx,
  }));
}
