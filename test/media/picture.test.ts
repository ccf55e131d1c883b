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
  for (const format of ["png", "jpeg", "webp", "gif"] as const) {
    test(`fitPicture keeps a small ${format} byte for byte`, async () => {
      const bytes = await blank(40, 30).toFormat(format).toBuffer();
      await expect(fitPicture(bytes, `image/${format}`, limits, "ada", never)).resolves.toEqual({
        mimeType: `image/${format}`,
        bytes,
      });
    });
  }

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

  test("fitPicture uses the first frame of an animation", async () => {
    const frames = await Promise.all(
      ["red", "blue"].map((background) =>
        sharp({ create: { width: 8, height: 8, channels: 3, background } })
          .png()
          .toBuffer(),
      ),
    );
    const animation = await sharp(frames, { join: { animated: true } })
      .gif()
      .toBuffer();
    expect((await sharp(animation).metadata()).pages).toBe(2);
    const { bytes, metadata } = await fit(animation, "image/gif");
    expect([metadata.pages ?? 1, metadata.width, metadata.height]).toEqual([1, 8, 8]);
    const { dominant } = await sharp(bytes).stats();
    expect(dominant.r).toBeGreaterThan(dominant.b);
  });

  test("fitPicture converts AVIF, which few models accept", async () => {
    const { mimeType, metadata } = await fit(await blank(30, 20).avif().toBuffer(), "image/avif");
    expect([mimeType, metadata.width, metadata.height]).toEqual(["image/jpeg", 30, 20]);
  });

  test("fitPicture keeps transparency if the file stays small, and otherwise uses a white background", async () => {
    const glass = await fit(await blank(3_000, 100, 4).png().toBuffer(), "image/png");
    expect([glass.mimeType, glass.metadata.hasAlpha]).toEqual(["image/png", true]);
    const heavy = await fit(await noise(1_700, 1_700).ensureAlpha(0.5).png().toBuffer(), "image/png");
    expect([heavy.mimeType, heavy.metadata.hasAlpha]).toEqual(["image/jpeg", false]);
  });

  test("fitPicture compresses more if an image would be too large", async () => {
    const bytes = await noise(900, 900).png().toBuffer();
    const fitted = await fitPicture(bytes, "image/png", { ...limits, maxSentBytes: 400_000 }, "ada", never);
    expect(fitted).toMatchObject({ mimeType: "image/jpeg" });
    if ("bytes" in fitted) expect(fitted.bytes.byteLength).toBeLessThan(400_000);
  });

  test("fitPicture converts print colours to screen colours", async () => {
    const print = await blank(30, 20).toColourspace("cmyk").jpeg().toBuffer();
    expect((await sharp(print).metadata()).space).toBe("cmyk");
    expect((await fit(print, "image/jpeg")).metadata.space).toBe("srgb");
  });

  test("fitPicture refuses an image with too many pixels before decoding it", async () => {
    const bomb = await blank(10_000, 6_000).png({ compressionLevel: 9 }).toBuffer();
    expect(bomb.byteLength).toBeLessThan(1_000_000);
    await expect(fitPicture(bomb, "image/png", limits, "ada", never)).resolves.toEqual({
      problem: { kind: "too-many-pixels", maxPixels: 50_000_000 },
    });
  });

  test("fitPicture detects a small truncated image", async () => {
    for (const format of ["png", "jpeg", "webp"] as const) {
      const whole = await noise(100, 100).toFormat(format).toBuffer();
      const half = whole.subarray(0, whole.byteLength / 2);
      await expect(fitPicture(half, `image/${format}`, limits, "ada", never)).resolves.toEqual({
        problem: { kind: "undecodable" },
      });
    }
  });

  test("fitPicture cannot decode HEIC", async () => {
    const heic = Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from("ftypheic\0\0\0\0mif1heic")]);
    await expect(fitPicture(heic, "image/heic", limits, "ada", never)).resolves.toEqual({
      problem: { kind: "undecodable" },
    });
  });
});
