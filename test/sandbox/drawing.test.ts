import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { drawPicture, toPixelSize } from "../../src/sandbox/drawing.ts";
import { ASPECT_RATIOS, IMAGE_SIZES } from "../../src/sandbox/image-request.ts";
import { picture } from "./sandbox.ts";

const never = new AbortController().signal;

describe("the size of an image in pixels", () => {
  test("toPixelSize keeps every ratio exactly and about as many pixels as the square", () => {
    for (const imageSize of IMAGE_SIZES) {
      for (const aspectRatio of ASPECT_RATIOS) {
        const { widthPx, heightPx } = toPixelSize(aspectRatio, imageSize);
        const [width = 1, height = 1] = aspectRatio.split(":").map(Number);
        expect(widthPx * height).toBe(heightPx * width);
        const side = Number.parseInt(imageSize, 10) * 1024;
        expect(Math.abs((widthPx * heightPx) / side ** 2 - 1)).toBeLessThan(0.05);
      }
    }
  });
});

describe("the sandbox's images", () => {
  test.each([
    ["21:9", "1K", 1],
    ["21:9", "1K", 16],
    ["9:16", "1K", 16],
    ["16:9", "2K", 2],
    ["3:4", "4K", 0],
  ] as const)("the sandbox draws %s at %s with %i references", async (aspectRatio, imageSize, count) => {
    const bytes = await picture("red", 5, 3);
    const references = Array.from({ length: count }, () => ({
      bytes,
      mimeType: "image/png",
      widthPx: 5,
      heightPx: 3,
      sample: bytes,
    }));
    const png = await drawPicture({ prompt: "A <b>&amp; star", references, aspectRatio, imageSize }, never);
    const { widthPx, heightPx } = toPixelSize(aspectRatio, imageSize);
    expect(await sharp(png).metadata()).toMatchObject({ format: "png", width: widthPx, height: heightPx, channels: 3 });
  });

  test("an image has a colour that its prompt names", async () => {
    const options = { prompt: "purple at night", references: [], aspectRatio: "1:1", imageSize: "1K" } as const;
    const { data } = await sharp(await drawPicture(options, never))
      .raw()
      .toBuffer({ resolveWithObject: true });
    expect(data.includes(Buffer.from([125, 60, 160]))).toBe(true);
  });
});
