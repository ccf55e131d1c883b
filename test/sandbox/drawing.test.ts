import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { drawPicture, toPixelSize } from "../../src/sandbox/drawing.ts";
import { ASPECT_RATIOS, IMAGE_SIZES } from "../../src/sandbox/image-request.ts";
import { drawLetters, wrapLetters } from "../../src/sandbox/lettering.ts";
import { picture } from "./sandbox.ts";

const never = new AbortController().signal;

/** How bright the foot of a drawing is. */
async function footOf(prompt: string): Promise<number> {
  const png = await drawPicture({ prompt, references: [], aspectRatio: "1:1", imageSize: "1K" }, 1, never);
  // `stats` by itself would count the whole picture.
  const foot = await sharp(png).extract({ left: 0, top: 950, width: 1024, height: 74 }).toBuffer();
  const { channels } = await sharp(foot).stats();
  return channels[0]?.mean ?? 0;
}

describe("toPixelSize", () => {
  test("keeps every ratio exactly and about the pixels of the square", () => {
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

describe("drawPicture", () => {
  test.each([
    ["21:9", "1K", 1],
    ["21:9", "1K", 16],
    ["9:16", "1K", 16],
    ["16:9", "2K", 2],
    ["3:4", "4K", 0],
  ] as const)("draws %s at %s with %i references", async (aspectRatio, imageSize, count) => {
    const bytes = await picture("red", 5, 3);
    const references = Array.from({ length: count }, () => ({
      bytes,
      mimeType: "image/png",
      widthPx: 5,
      heightPx: 3,
      sample: bytes,
    }));
    const png = await drawPicture(
      { prompt: "A <b>&amp; star ".repeat(40), references, aspectRatio, imageSize },
      1,
      never,
    );
    const { widthPx, heightPx } = toPixelSize(aspectRatio, imageSize);
    expect(await sharp(png).metadata()).toMatchObject({ format: "png", width: widthPx, height: heightPx, channels: 3 });
  });

  test.each(["a red fox", "a lighthouse at night", "a red house, a boat and a tree"])(
    "every take of %j looks other than the one before, and always the same",
    async (prompt) => {
      const options = { prompt, references: [], aspectRatio: "1:1", imageSize: "1K" } as const;
      const takes = await Promise.all([1, 2, 3, 4, 5, 6, 2].map((take) => drawPicture(options, take, never)));
      const pixels = await Promise.all(takes.map((png) => sharp(png).resize(64, 64).raw().toBuffer()));
      for (const [index, later] of pixels.slice(1, 6).entries()) {
        const before = pixels[index] ?? Buffer.alloc(0);
        const changed = later.filter((value, at) => Math.abs(value - (before[at] ?? 0)) > 30).length;
        expect(changed / later.length).toBeGreaterThan(0.05);
        if (!prompt.includes("night")) expect(later.subarray(0, 3).equals(before.subarray(0, 3))).toBe(false);
      }
      expect(takes[6]?.equals(takes[1] ?? Buffer.alloc(0))).toBe(true);
    },
  );

  test("the prompt is visible at the foot", async () => {
    // White letters on a dark band: more letters make it brighter.
    expect(await footOf("WWWWWWWWWWWWWWWWWWWWWWWW")).toBeGreaterThan((await footOf(".")) + 3);
  });
});

describe("lettering", () => {
  test("wraps at spaces, breaks long words, ends what does not fit in three dots", () => {
    expect(wrapLetters("one two three", 7, 9)).toEqual(["one two", "three"]);
    expect(wrapLetters("abcdefghij", 4, 9)).toEqual(["abcd", "efgh", "ij"]);
    expect(wrapLetters("one two three four", 7, 2)).toEqual(["one two", "thre..."]);
    expect(wrapLetters("長崎の港", 4, 9)).toEqual(["長崎", "の港"]);
    expect(wrapLetters("", 4, 9)).toEqual([""]);
  });

  test("draws ASCII as dots and lets nothing of the text into the markup", () => {
    const svg = drawLetters(["<&>長"], { xPx: 0, yPx: 0, dotPx: 2, color: [255, 255, 255] });
    expect(svg).toContain("&#38263;");
    expect(svg.replace(/<\/?(?:g|path|text)\b[^>]*>/g, "")).toBe("&#38263;");
  });
});
