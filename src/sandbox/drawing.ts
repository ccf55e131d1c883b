import { decode } from "../media/decoder.ts";
import type { Inset } from "../media/decoder-job.ts";
import { COLORS, type Rgb } from "./colors.ts";
import { ASPECT_RATIOS, IMAGE_SIZES, type SandboxImageRequest } from "./image-request.ts";
import { drawLetters, fitLetters, heightOfLines, wrapLetters } from "./lettering.ts";
import type { Picture } from "./pictures.ts";
import { drawScene, toRgb } from "./scene.ts";

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
/** References beside each other. */
const PER_ROW = 4;
const WHITE: Rgb = [255, 255, 255];

/** Pixels of a ratio and size: the ratio exactly, and about as many pixels as the square of that size has. */
export function toPixelSize(aspectRatio: DrawingOptions["aspectRatio"], imageSize: DrawingOptions["imageSize"]): Size {
  const [width = 1, height = 1] = aspectRatio.split(":").map(Number);
  const unit = Math.floor(SIDE_PX[imageSize] / Math.sqrt(width * height));
  return { widthPx: width * unit, heightPx: height * unit };
}

/** A PNG of the prompt's scene, with its words below and references in frames. `take`, from 1, varies it. */
export async function drawPicture(options: DrawingOptions, take: number, signal: AbortSignal): Promise<Buffer> {
  const { prompt, references, aspectRatio, imageSize } = options;
  const size = toPixelSize(aspectRatio, imageSize);
  const { widthPx, heightPx } = size;
  const dotPx = Math.max(1, Math.round(Math.min(widthPx, heightPx) / 300));
  const marginPx = 8 * dotPx;
  const { perLine, lines } = fitLetters(widthPx - 2 * marginPx, heightPx / 4, dotPx);
  const words = wrapLetters(prompt, perLine, lines);
  const bandPx = heightOfLines(words.length, dotPx) + 2 * marginPx;

  const scene = drawScene(prompt, { widthPx, heightPx: heightPx - bandPx }, take);
  const band = `<rect y="${heightPx - bandPx}" width="${widthPx}" height="${bandPx}" fill="${toRgb(COLORS["navy"] ?? WHITE)}"/>`;
  const text = drawLetters(words, { xPx: marginPx, yPx: heightPx - bandPx + marginPx, dotPx, color: WHITE });
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${widthPx}" height="${heightPx}">${scene}${band}${text}</svg>`;

  const insets = toInsets(references, { widthPx, heightPx: heightPx - bandPx }, marginPx, dotPx);
  return Buffer.from(await decode({ type: "draw", svg, insets }, "sandbox", signal));
}

/** The references in rows above the band, each framed and numbered as it was sent. */
function toInsets(pictures: readonly Picture[], room: Size, marginPx: number, dotPx: number): Inset[] {
  const rows = Math.ceil(pictures.length / PER_ROW);
  const columns = Math.min(PER_ROW, Math.max(2, pictures.length));
  const heightPx = (room.heightPx * (rows === 1 ? 0.4 : 0.8)) / rows;
  const sidePx = Math.floor(Math.min((room.widthPx - marginPx) / columns, heightPx) - marginPx);
  return pictures.map(({ bytes }, index) => ({
    bytes,
    sidePx,
    borderPx: 2 * dotPx,
    badge: drawNumber(index + 1, dotPx),
    leftPx: marginPx + (index % PER_ROW) * (sidePx + marginPx),
    topPx: room.heightPx - (rows - Math.floor(index / PER_ROW)) * (sidePx + marginPx),
  }));
}

function drawNumber(number: number, dotPx: number): string {
  const digits = String(number);
  const widthPx = (digits.length * 6 + 3) * dotPx;
  const letters = drawLetters([digits], { xPx: 2 * dotPx, yPx: 2 * dotPx, dotPx, color: COLORS["navy"] ?? WHITE });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${widthPx}" height="${11 * dotPx}"><rect width="100%" height="100%" fill="#fff"/>${letters}</svg>`;
}
