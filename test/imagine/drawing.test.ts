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
    onEnd: async () => {},
    reserve: async () => ({ settle: async () => {} }),
    ...rest,
  };
  const draw = (signal = never) =>
    drawParts(deps, { turn, sink: platform.sink, onNotice: () => {}, mustAsk: false, stop: never }, signal);
  return { ...platform, draw, requests };
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
