import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { FileProblem } from "../../src/media/file-problem.ts";
import { createReadPicture, type ReferenceLimits } from "../../src/media/reference-picture.ts";
import type { AttachmentRef } from "../../src/port/events.ts";

const never = new AbortController().signal;
const ref: AttachmentRef = { platform: "slack", id: "F1", name: "a.png", sizeBytes: 1 };
const red = (width = 8, height = 8) => sharp({ create: { width, height, channels: 3, background: "red" } });
const noise = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: "red", noise: { type: "gaussian", sigma: 60 } } });
const utf8 = (text: string) => new TextEncoder().encode(text);

async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 10_000) yield bytes.subarray(at, at + 10_000);
}

function readBytes(bytes: Uint8Array, limits: Partial<ReferenceLimits> = {}) {
  const read = createReadPicture(async () => inPieces(bytes), limits);
  return read(ref, "ada", never);
}

function readFailing(error: unknown) {
  const openAttachment = async () => {
    throw error;
  };
  return createReadPicture(openAttachment)(ref, "ada", never);
}

describe("the reading of a reference image", () => {
  test.each(["png", "jpeg", "webp", "gif"] as const)(
    "the reader uses a small still %s byte for byte",
    async (format) => {
      const bytes = new Uint8Array(await red().toFormat(format).toBuffer());
      const mimeType = `image/${format}`;
      expect(await readBytes(bytes)).toEqual({ bytes, mimeType, originalType: mimeType, isChanged: false });
    },
  );

  test("the reader passes HEIC on unchanged, because only gateways can read it", async () => {
    const heic = Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from("ftypheic\0\0\0\0mif1heic")]);
    expect(await readBytes(heic)).toMatchObject({ mimeType: "image/heic", isChanged: false });
  });

  test("the reader converts AVIF, because not every gateway accepts it", async () => {
    const picture = await readBytes(await red().avif().toBuffer());
    expect(picture).toMatchObject({ mimeType: "image/jpeg", originalType: "image/avif", isChanged: true });
  });

  test("the reader converts TIFF without loss, and marks it as not accepted unchanged", async () => {
    const picture = await readBytes(await noise(64, 64).tiff().toBuffer());
    expect(picture).toMatchObject({ mimeType: "image/png", originalType: undefined, isChanged: true });
    if ("problem" in picture) throw new Error(picture.problem);
    expect((await sharp(picture.bytes).metadata()).width).toBe(64);
  });

  test("the reader uses the first frame of an animation", async () => {
    const frames = Buffer.concat([
      await red(4, 4).raw().toBuffer(),
      await sharp({ create: { width: 4, height: 4, channels: 3, background: "blue" } })
        .raw()
        .toBuffer(),
    ]);
    const gif = await sharp(frames, { raw: { width: 4, height: 8, channels: 3, pageHeight: 4 } })
      .gif()
      .toBuffer();
    const picture = await readBytes(gif);
    if ("problem" in picture) throw new Error(picture.problem);
    const { pages = 1, height } = await sharp(picture.bytes).metadata();
    expect([pages, height, picture.isChanged, picture.originalType]).toEqual([1, 4, true, "image/gif"]);
    const [dominant] = await sharp(picture.bytes).raw().toBuffer();
    expect(dominant).toBeGreaterThan(200);
  });

  test("the reader scales a large image, and compresses one with too many bytes more", async () => {
    const long = await readBytes(await red(3_000, 20).png().toBuffer(), { maxSide: 300 });
    if ("problem" in long) throw new Error(long.problem);
    expect((await sharp(long.bytes).metadata()).width).toBe(300);
    const heavy = await readBytes(await noise(400, 400).png().toBuffer(), { maxSentBytes: 60_000 });
    expect(heavy).toMatchObject({ mimeType: "image/jpeg", isChanged: true });
    if ("problem" in heavy) throw new Error(heavy.problem);
    expect(heavy.bytes.byteLength).toBeLessThanOrEqual(60_000);
  });

  test.each([
    ["nothing", new Uint8Array(), "is empty"],
    ["svg", utf8('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>'), /^is an SVG drawing/],
    ["html", utf8("<!DOCTYPE html><html><body>log in</body></html>"), /^is a web page/],
    ["text", utf8("a cat, painted"), "is text, not an image"],
    ["pdf", utf8("%PDF-1.7\n%%EOF"), /^is a PDF/],
    ["bmp", Buffer.concat([Buffer.from("BM"), Buffer.alloc(60)]), /^is a BMP image/],
    ["zip", Buffer.from("PK\x03\x04\x14\0\0\0\0\0", "latin1"), "is not an image"],
  ])("the reader refuses a file of this type by name: %s", async (_, bytes, problem) => {
    expect(await readBytes(bytes)).toEqual({ problem: expect.stringMatching(problem) as unknown });
  });

  test("the reader reports a damaged image as damaged", async () => {
    const bytes = await noise(100, 100).jpeg().toBuffer();
    expect(await readBytes(bytes.subarray(0, bytes.length / 2))).toEqual({
      problem: "is damaged or incomplete; send it again, as PNG or JPEG",
    });
  });

  test("the reader does not decode a small file with very many pixels", async () => {
    const bytes = await red(2_000, 2_000).png().toBuffer();
    expect(await readBytes(bytes, { maxPixels: 1_000_000 })).toEqual({
      problem: "has more than 1 million pixels; send a smaller version",
    });
  });

  test("reading stops at the size limit, and a file with a larger announced size is not opened", async () => {
    const problem = "is larger than 20 bytes; send a smaller version";
    expect(await readBytes(new Uint8Array(21), { maxFileBytes: 20 })).toEqual({ problem });
    const opened: AttachmentRef[] = [];
    const openAttachment = async (ref: AttachmentRef) => {
      opened.push(ref);
      return inPieces(new Uint8Array());
    };
    const read = createReadPicture(openAttachment, { maxFileBytes: 20 });
    expect(await read({ ...ref, sizeBytes: 21 }, "ada", never)).toEqual({ problem });
    expect(opened).toEqual([]);
  });

  test("a failure shows only the words meant for people", async () => {
    const problem = new FileProblem("page", "could not be fetched: Slack sent a web page instead");
    expect(await readFailing(problem)).toEqual({ problem: problem.message });
    expect(await readFailing(new Error("The file cannot be opened.", { cause: problem }))).toEqual({
      problem: problem.message,
    });
    expect(await readFailing(new Error("https://files.example/?token=xoxb-1 answered 500"))).toEqual({
      problem: "could not be fetched; attach it again",
    });
  });

  test("reading times out, and rejects if the caller leaves", async () => {
    const waiting = () => new Promise<never>(() => {});
    const read = createReadPicture(waiting, { timeoutMs: 10 });
    expect(await read(ref, "ada", never)).toEqual({ problem: "took too long to arrive" });
    const patient = createReadPicture(waiting);
    await expect(patient(ref, "ada", AbortSignal.abort(new Error("I left.")))).rejects.toThrow("I left.");
  });
});
