import { randomBytes } from "node:crypto";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { fitPicture } from "../../src/media/picture.ts";
import type { ImageMimeType } from "../../src/media/sniff.ts";

const limits = { maxPixels: 50_000_000, maxSide: 1_568, maxSentBytes: 4 * 1024 * 1024 };

const blank = (width: number, height: number, channels: 3 | 4 = 3) =>
  sharp({ create: { width, height, channels, background: { r: 200, g: 30, b: 30, alpha: 0.5 } } });

const never = new AbortController().signal;

const noise = (width: number, height: number) =>
  sharp(randomBytes(width * height * 3), { raw: { width, height, channels: 3 } });

async function fit(bytes: Uint8Array, mimeType: ImageMimeType) {
  const fitted = await fitPicture(bytes, mimeType, limits, "ada", never);
  if ("problem" in fitted) throw new Error(fitted.problem.kind);
  return { ...fitted, metadata: await sharp(fitted.bytes).metadata() };
}

describe("fitPicture", () => {
  test("fitPicture scales a large photo to the longest side and keeps its shape", async () => {
    const { mimeType, metadata } = await fit(await blank(4_000, 1_000).jpeg().toBuffer(), "image/jpeg");
    expect(mimeType).toBe("image/jpeg");
    expect([metadata.format, metadata.width, metadata.height]).toEqual(["jpeg", 1_568, 392]);
  });

  test("fitPicture keeps at least one pixel per side of a very thin image", async () => {
    const { metadata } = await fit(await blank(16_000, 2).png().toBuffer(), "image/png");
    expect([metadata.width, metadata.height]).toEqual([1_568, 1]);
  });

  test("fitPicture turns a photo upright and removes its location", async () => {
    const exif = { IFD0: { Copyright: "somebody" }, IFD3: { GPSLatitudeRef: "N", GPSLatitude: "51/1 30/1 0/1" } };
    const lying = await blank(60, 20).jpeg().withMetadata({ orientation: 6 }).withExifMerge(exif).toBuffer();
    const { bytes, metadata } = await fit(lying, "image/jpeg");
    expect([metadata.width, metadata.height, metadata.orientation, metadata.exif]).toEqual([
      20,
      60,
      undefined,
      undefined,
    ]);
    expect(Buffer.from(bytes).includes("somebody")).toBe(false);
  });

  test("fitPicture keeps transparency if the file stays small, and otherwise uses a white background", async () => {
    const glass = await fit(await blank(3_000, 100, 4).png().toBuffer(), "image/png");
    expect([glass.mimeType, glass.metadata.hasAlpha]).toEqual(["image/png", true]);
    const heavy = await fit(await noise(1_700, 1_700).ensureAlpha(0.5).png().toBuffer(), "image/png");
    expect([heavy.mimeType, heavy.metadata.hasAlpha]).toEqual(["image/jpeg", false]);
  });

  test("fitPicture converts print colours to screen colours", async () => {
    const print = await blank(30, 20).toColourspace("cmyk").jpeg().toBuffer();
    expect((await sharp(print).metadata()).space).toBe("cmyk");
    expect((await fit(print, "image/jpeg")).metadata.space).toBe("srgb");
  });
});
