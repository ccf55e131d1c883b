import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { fakePlatform } from "../../lab/support/fake-platform.ts";
import { noLinks, pictureTurn } from "../../lab/support/picture-turn.ts";
import type { GeneratedImage } from "../../src/gateway/image-answer.ts";
import type { ImageRequest } from "../../src/gateway/image-ways.ts";
import { type DrawingDeps, drawParts } from "../../src/imagine/drawing.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import type { PictureTurn } from "../../src/turn/record.ts";

const { signal: never } = new AbortController();
const png = async (side = 8) => {
  const noise = { type: "gaussian", mean: 128, sigma: 60 } as const;
  return sharp({ create: { width: side, height: side, channels: 3, background: "red", noise } })
    .png()
    .toBuffer();
};

async function start(turn: PictureTurn, given: Partial<DrawingDeps> & { bytes?: Uint8Array } = {}) {
  const { bytes = await png(), ...rest } = given;
  const platform = fakePlatform();
  const requests: ImageRequest[] = [];
  const ends: unknown[] = [];
  const image: GeneratedImage = { bytes, mimeType: "image/png", text: "" };
  const deps: DrawingDeps = {
    right: NO_RIGHT,
    gateway: {
      async generateImage(request) {
        requests.push(request);
        return image;
      },
    },
    references: { ...noLinks, prepare: async () => ({ ok: true, parts: [] }) },
    onEnd: async (_job, number, error) => void ends.push([number, error]),
    reserve: async () => ({ settle: async () => {} }),
    ...rest,
  };
  const draw = (signal = never, stop = never) =>
    drawParts(deps, { turn, sink: platform.sink, onNotice: () => {}, mustAsk: false, stop }, signal);
  return { ...platform, draw, requests, ends };
}

describe("drawing the parts of an image turn", () => {
  test("drawParts prepares the reference links only once, and parallel parts share them", async () => {
    const refs = [{ platform: "test", id: "x", name: "x.png", sizeBytes: 1 }];
    const parts = [{ mimeType: "image/png", fileUri: "https://files.example/x" }];
    let prepared = 0;
    const references: DrawingDeps["references"] = {
      ...noLinks,
      async prepare() {
        prepared += 1;
        return { ok: true, parts };
      },
    };
    const pending = { state: "pending" } as const;
    const { draw, requests } = await start(pictureTurn({ references: refs, parts: [pending, pending] }), {
      references,
    });
    await draw();
    const links = requests.map(async ({ references: source }) => source?.links(never));
    expect(await Promise.all(links)).toEqual([parts, parts]);
    expect(prepared).toBe(1);
  });

  test("drawParts shrinks an image that is too large for the platform", async () => {
    const bytes = await png(700);
    expect(bytes.length).toBeGreaterThan(1_000_000);
    const { draw, channel } = await start(pictureTurn(), { bytes });
    await draw();
    const [file] = channel[0]?.files ?? [];
    expect(file).toMatchObject({ name: "a-fox.jpg", contentType: "image/jpeg" });
    expect(file?.bytes.length).toBeLessThanOrEqual(1_000_000);
  });

  test("drawParts leaves aborted parts pending, and starts no further parts", async () => {
    const controller = new AbortController();
    const pending = { state: "pending" } as const;
    const turn = pictureTurn({ parts: [pending, pending, pending] });
    const generateImage = (_: ImageRequest, signal: AbortSignal) => {
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => reject(signal.reason));
      controller.abort("shutdown");
      return promise;
    };
    const { draw, ends } = await start(turn, { gateway: { generateImage } });
    await expect(draw(controller.signal)).rejects.toBe("shutdown");
    expect(turn.parts).toEqual([pending, pending, pending]);
    expect(ends).toEqual([]);
  });

  test("drawParts shows finished images after a Stop, and creates no more", async () => {
    const stop = new AbortController();
    const pending = { state: "pending" } as const;
    const turn = pictureTurn({ parts: [pending, pending, pending] });
    const stopped = { state: "failed", reason: "Stopped.", canRetry: true };
    let asked = 0;
    const generateImage = async (_: ImageRequest, signal: AbortSignal) => {
      asked += 1;
      if (asked === 1) return { bytes: await png(), mimeType: "image/png", text: "" };
      return new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    const { draw, channel, setTrouble, ends } = await start(turn, { gateway: { generateImage } });
    setTrouble((call) => {
      if (call === "upload") stop.abort("stopped");
      return undefined;
    });
    await draw(never, stop.signal);
    expect(turn.parts).toEqual([expect.objectContaining({ state: "done" }), stopped, stopped]);
    expect(channel.map(({ nonce }) => nonce)).toEqual(["job.1"]);
    expect(asked).toBe(2);
    expect(ends).toContainEqual([3, "stopped"]);
  });

  test.each([
    [{ kind: "rejected" as const }, /couldn't post it here/],
    [
      { kind: "forbidden" as const, missing: "files:write" },
      /couldn't post it here\. .*`files:write`.*grant it\. Then press Retry/,
    ],
  ])("drawParts says why the platform does not accept an image: %j", async (trouble, words) => {
    const turn = pictureTurn();
    const { draw, setTrouble } = await start(turn);
    setTrouble(() => trouble);
    await draw();
    expect(turn.parts).toMatchObject([{ state: "failed", reason: expect.stringMatching(words) }]);
  });

  test("drawParts removes an image that arrives for a person who is being erased", async () => {
    const controller = new AbortController();
    const turn = pictureTurn();
    const { draw, channel, setTrouble, calls } = await start(turn);
    setTrouble((call) => {
      if (call === "upload") queueMicrotask(() => controller.abort("forgotten"));
      return undefined;
    });
    await expect(draw(controller.signal)).rejects.toBe("forgotten");
    expect(turn.parts).toEqual([{ state: "pending" }]);
    expect(calls).toEqual(["upload", "remove"]);
    expect(channel).toEqual([]);
  });
});
