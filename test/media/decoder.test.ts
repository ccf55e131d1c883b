import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import sharp from "sharp";
import { afterAll, describe, expect, test } from "vitest";
import { createDecoder, decode } from "../../src/media/decoder.ts";
import { eventually } from "../support/eventually.ts";

const never = new AbortController().signal;
const toSvg = (side: number) => `<svg xmlns="http://www.w3.org/2000/svg" width="${side}" height="${side}"/>`;
const limits = { maxPixels: 50_000_000, maxSide: 1_568, maxSentBytes: 4 * 1024 * 1024 };
const picture = sharp({ create: { width: 40, height: 30, channels: 3, background: "red" } });

const folder = mkdtempSync(join(tmpdir(), "decoder-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A decoder whose process runs other code for a job. */
function startOther(code: string, options: { jobMs?: number; waitMs?: number; idleMs?: number } = {}) {
  const program = join(folder, `${crypto.randomUUID()}.mjs`);
  writeFileSync(program, code);
  const other = createDecoder({ program, ...options });
  return (owner = "ada", signal = never) => other({ type: "measure", bytes: Uint8Array.of(1) }, owner, signal);
}

const PID =
  "process.on('message', () => process.send({ value: { value: { width: process.pid, height: 0 } }, lengths: [] }));";

describe("decode", () => {
  test("the decoder refuses too many pixels for a file type after reading only the header", async () => {
    const avif = await picture.clone().avif().toBuffer();
    const at = avif.indexOf("ispe") + 8;
    avif.writeUInt32BE(7_000, at);
    avif.writeUInt32BE(7_000, at + 4);
    const fitting = decode({ type: "fit", bytes: avif, mimeType: "image/avif", limits }, "ada", never);
    await expect(fitting).rejects.toMatchObject({ problem: { kind: "too-many-pixels", maxPixels: 18_641_351 } });
    avif.writeUInt32BE(4_096, at);
    avif.writeUInt32BE(4_096, at + 4);
    const allowed = decode({ type: "fit", bytes: avif, mimeType: "image/avif", limits }, "ada", never);
    await expect(allowed).rejects.toMatchObject({ problem: { kind: "undecodable" } });
  });

  const giants: ReadonlyArray<[name: string, make: () => Promise<Buffer>, maxPixels: number]> = [
    [
      "a JPEG of four channels that comes in several passes",
      async () => {
        const ink = picture.clone().toColourspace("cmyk");
        const jpeg = await ink.jpeg({ progressive: true, chromaSubsampling: "4:4:4" }).toBuffer();
        // The frame's header: marker, length, bits, height, width.
        const at = jpeg.indexOf(Buffer.from([0xff, 0xc2]));
        jpeg.writeUInt16BE(9_000, at + 5);
        jpeg.writeUInt16BE(9_000, at + 7);
        return jpeg;
      },
      41_943_040,
    ],
    [
      "a WebP",
      async () => {
        const webp = await picture.clone().webp().toBuffer();
        // Width and height of a key frame, after its start code.
        const at = webp.indexOf(Buffer.from([0x9d, 0x01, 0x2a])) + 3;
        webp.writeUInt16LE(16_383, at);
        webp.writeUInt16LE(16_383, at + 2);
        return webp;
      },
      50_000_000,
    ],
    [
      "a GIF that moves",
      async () => {
        const frames = await Promise.all(
          [picture, picture.clone().negate()].map((one) => one.clone().gif().toBuffer()),
        );
        const gif = await sharp(frames, { join: { animated: true } })
          .gif()
          .toBuffer();
        // The size of the screen and of each frame. A screen that is larger than 2,048 does not count alone.
        const frame = Buffer.from([0x2c, 0, 0, 0, 0, 40, 0, 30, 0]);
        const places = [6];
        for (let at = gif.indexOf(frame); at >= 0; at = gif.indexOf(frame, at + 1)) places.push(at + 5);
        for (const at of places) {
          gif.writeUInt16LE(9_000, at);
          gif.writeUInt16LE(9_000, at + 2);
        }
        return gif;
      },
      50_000_000,
    ],
    [
      "a TIFF of 16 bits and four channels",
      async () => {
        const tiff = await picture
          .clone()
          .ensureAlpha(0.5)
          .toColourspace("rgb16")
          .tiff({ compression: "none" })
          .toBuffer();
        const [from, count] = [tiff.readUInt32LE(4), tiff.readUInt16LE(tiff.readUInt32LE(4))];
        for (let entry = from + 2; entry < from + 2 + 12 * count; entry += 12) {
          // Width and height, each as a long or a short.
          if ([256, 257].includes(tiff.readUInt16LE(entry))) tiff.writeUInt32LE(6_900, entry + 8);
        }
        return tiff;
      },
      41_943_040,
    ],
  ];

  test.each(giants)(
    "the decoder refuses %s that is too large after reading only the header",
    async (_, make, maxPixels) => {
      const fitting = decode({ type: "fit", bytes: await make(), mimeType: undefined, limits }, "ada", never);
      await expect(fitting).rejects.toMatchObject({ problem: { kind: "too-many-pixels", maxPixels } });
    },
  );

  test("the decoder counts the memory for images that it must decode at once", async () => {
    const fit = async (progressive: boolean) => {
      const png = await picture.clone().ensureAlpha(0.5).toColourspace("rgb16").png({ progressive }).toBuffer();
      // Its header, "IHDR" with 13 bytes and their checksum, claims 45 million pixels.
      png.writeUInt32BE(9_000, 16);
      png.writeUInt32BE(5_000, 20);
      png.writeUInt32BE(crc32(png.subarray(12, 29)), 29);
      return await decode({ type: "fit", bytes: png, mimeType: "image/png", limits }, "ada", never);
    };
    await expect(fit(true)).rejects.toMatchObject({ problem: { kind: "too-many-pixels", maxPixels: 41_943_040 } });
    await expect(fit(false)).rejects.toMatchObject({ problem: { kind: "undecodable" } });
  });

  test("the decoder opens only SVG that it wrote itself, before and after it drew an image", async () => {
    const fit = () => decode({ type: "fit", bytes: Buffer.from(toSvg(20)), mimeType: undefined, limits }, "ada", never);
    const inset = {
      sidePx: 8,
      borderPx: 1,
      leftPx: 0,
      topPx: 0,
    };
    const draw = (bytes: Uint8Array) =>
      decode({ type: "draw", svg: toSvg(20), insets: [{ ...inset, bytes }] }, "ada", never);
    await expect(fit()).rejects.toMatchObject({ problem: { kind: "undecodable" } });
    await expect(draw(Buffer.from(toSvg(20)))).rejects.toMatchObject({ problem: { kind: "undecodable" } });
    expect(await sharp(await draw(await picture.png().toBuffer())).metadata()).toMatchObject({ width: 20, height: 20 });
    await expect(fit()).rejects.toMatchObject({ problem: { kind: "undecodable" } });
  });

  test("the decoder works in another process with an empty environment", async () => {
    const names =
      "Object.keys(process.env).filter((name) => !['NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE'].includes(name))";
    const ask = startOther(`process.on("message", () => process.send({ value: { value: ${names} }, lengths: [] }));`);
    expect(await ask()).toEqual(["MALLOC_ARENA_MAX", "UV_THREADPOOL_SIZE"]);
  });

  test("the decoder starts a new process after one that died, and reports that image as failed", async () => {
    const marker = JSON.stringify(join(folder, "died"));
    const ask = startOther(`import { existsSync, writeFileSync } from "node:fs";
      process.on("message", () => {
        if (existsSync(${marker})) return process.send({ value: { value: { width: 1, height: 1 } }, lengths: [] });
        writeFileSync(${marker}, "");
        process.kill(process.pid, "SIGKILL");
      });`);
    await expect(ask()).rejects.toMatchObject({ problem: { kind: "failed" } });
    expect(await ask()).toEqual({ width: 1, height: 1 });
  });

  test("the decoder stops waiting for a slow image and for its turn", async () => {
    const silent = "process.on('message', () => {});";
    await expect(startOther(silent, { jobMs: 10 })()).rejects.toMatchObject({ problem: { kind: "too-slow" } });
    const ask = startOther(silent, { waitMs: 10 });
    const left = new AbortController();
    const running = ask("ada", left.signal);
    await expect(ask("ben")).rejects.toMatchObject({ problem: { kind: "busy" } });
    left.abort(new Error("I left."));
    await expect(running).rejects.toThrow("I left.");
  });

  test("the decoder frees its slot at once if the caller aborts in the middle", async () => {
    const ask = startOther(`import { existsSync, writeFileSync } from "node:fs";
      const marker = ${JSON.stringify(join(folder, "begun"))};
      process.on("message", () => {
        if (existsSync(marker)) process.send({ value: { value: { width: 1, height: 1 } }, lengths: [] });
        else writeFileSync(marker, "");
      });`);
    const left = new AbortController();
    const running = ask("ada", left.signal);
    const next = ask("ben");
    await eventually(() => existsSync(join(folder, "begun"))).toBe(true);
    left.abort(new Error("I left."));
    await expect(running).rejects.toThrow("I left.");
    expect(await next).toEqual({ width: 1, height: 1 });
  });

  test("the decoder keeps its process while there is work, then ends the process", async () => {
    const kept = startOther(PID);
    const { width: pid } = await kept();
    expect(await kept()).toEqual({ width: pid, height: 0 });
    const idle = startOther(PID, { idleMs: 1 });
    const { width: ended } = await idle();
    await eventually(() => isAlive(ended)).toBe(false);
    expect((await idle()).width).not.toBe(ended);
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
