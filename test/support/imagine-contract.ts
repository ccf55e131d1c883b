import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { drawn, drawnOne, newest, pngs, promptOf, said, sourcesOf, square, toSource } from "./imagine-evidence.ts";
import type { GivenFile, ShownPicture, Surface } from "./surface.ts";
import type { Differences, StartSurface } from "./surface-contract.ts";
import { GATEWAY_KEY, KEY_HEADER } from "./surface-world.ts";

const WITHHELD = {
  error: { type: "invalid_request_error", code: "content_policy_violation", message: "", param: null },
};
const UNKNOWN_KEY = { error: { type: "invalid_request_error", code: "invalid_api_key", message: "", param: null } };

/** Tests `/imagine` with the platform's own SDK, on each surface with a form for images. */
export function imagineContract(name: string, start: StartSurface, differences: Differences = {}): void {
  describe(`/imagine on ${name}`, () => {
    describeDrawing(start);
    describeReferences(start);
    describeTroubles(start);
    describeButtons(start, differences, "as soon as it is posted", async () => {});
    describeButtons(start, differences, "after a restart of the bot", (surface) => surface.restart());
  });
}

function describeDrawing(start: StartSurface): void {
  test("/imagine creates an image with an alt text and buttons", async () => {
    const surface = await start();
    await surface.imagine("a fox in the snow");
    const picture = await drawnOne(surface);
    expect(picture).toMatchObject({ name: "a-fox-in-the-snow.png", altText: "a fox in the snow" });
    expect(picture.text).toMatch(/drawn from your words.*a fox in the snow.*sandbox-image/s);
    expect(picture.buttons).toEqual(["again", "vary", "edit", "upscale", "delete"]);
    expect(await sharp(await picture.read()).metadata()).toMatchObject({ format: "png", width: 1024, height: 1024 });
    expect(surface.notes()).toEqual([]);
  });

  test("/imagine posts each of four images as soon as it is ready", async () => {
    const surface = await start();
    const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
    surface.world.meet((_, index) => gates[index]?.promise ?? Promise.resolve());
    await surface.imagine("a fox --count 4");
    for (const [index, gate] of gates.entries()) {
      expect(surface.pictures()).toHaveLength(index);
      gate.resolve();
      await surface.until(() => surface.pictures().length > index, `picture ${index + 1}`);
    }
    const pictures = await drawn(surface, 4);
    const names = pictures.map((picture) => picture.name).toSorted();
    expect(names).toEqual(["a-fox-1.png", "a-fox-2.png", "a-fox-3.png", "a-fox-4.png"]);
    expect(surface.notes()).toEqual([]);
  });

  test("options in the prompt reach the gateway and shape the image", async () => {
    const surface = await start();
    await surface.imagine("a fox --ar 16:9 --size 2k");
    const picture = await drawnOne(surface);
    const [call] = surface.world.calls;
    expect(call?.path).toBe("/v1beta/models/sandbox-image:generateContent");
    expect(call?.body).toEqual({
      contents: [{ parts: [{ text: "a fox" }] }],
      generationConfig: {
        responseModalities: ["TEXT", "IMAGE"],
        imageConfig: { aspectRatio: "16:9", imageSize: "2K" },
      },
    });
    const { width, height } = await sharp(await picture.read()).metadata();
    expect(width / height).toBeCloseTo(16 / 9, 1);
    expect(width).toBeGreaterThan(2_000);
  });

  test("options in the fields of the form reach the gateway", async () => {
    const surface = await start();
    await surface.imagine("a fox", { options: { ratio: "9:16", count: "2" } });
    await drawn(surface, 2);
    const configs = surface.world.calls.map(({ body }) => body.generationConfig?.imageConfig);
    expect(configs).toEqual([{ aspectRatio: "9:16" }, { aspectRatio: "9:16" }]);
  });

  test("the model creates an image that someone asks for in words, and the next words change that image", async () => {
    const surface = await start();
    await surface.ask("draw a red boat");
    const first = await drawnOne(surface);
    await surface.goOn("now at night");
    const [, second] = await drawn(surface, 2);
    const [, call] = surface.world.calls;
    expect(call && promptOf(call)).toContain("now at night");
    expect(await sourcesOf(call)).toEqual(pngs(await first.read()));
    expect(second?.text).toContain("1 reference picture");
  });

  test("the bot posts an image that the chat model creates itself, and the next words change that image", async () => {
    const surface = await start();
    const { bytes } = await square("red", "png", "red.png");
    surface.world.script([{ pictures: [`data:image/png;base64,${Buffer.from(bytes).toString("base64")}`] }]);
    await surface.ask("paint a red boat");
    const picture = await drawnOne(surface);
    expect(picture).toMatchObject({ name: "paint-a-red-boat.png", altText: "paint a red boat" });
    expect(Buffer.from(await picture.read())).toEqual(Buffer.from(bytes));
    expect(picture.buttons).toEqual(["again", "vary", "edit", "upscale", "delete"]);
    expect(surface.notes().map(({ text }) => text)).toEqual([expect.stringContaining("The answer is an image.")]);
    await surface.goOn("now at night");
    await drawn(surface, 2);
    expect(await sourcesOf(surface.world.calls[0])).toEqual(pngs(bytes));
  });
}

function describeReferences(start: StartSurface): void {
  test("the model starts from an image that comes with a request", async () => {
    const surface = await start();
    const red = await square("red", "webp", "red.png");
    await surface.ask("now at night", { files: [red] });
    await drawnOne(surface);
    expect(await sourcesOf(surface.world.calls[0])).toEqual([toSource("image/webp", red.bytes)]);
  });

  test("references reach the gateway in order, each with the type of its bytes, not of its name", async () => {
    const surface = await start();
    const red = await square("red", "webp", "one.png");
    const lime = await square("lime", "jpeg", "two.webp");
    const blue = await square("blue", "png", "three.jpg");
    await surface.imagine("all of them together", { files: [red, lime, blue] });
    const picture = await drawnOne(surface);
    expect(await sourcesOf(surface.world.calls[0])).toEqual([
      toSource("image/webp", red.bytes),
      toSource("image/jpeg", lime.bytes),
      toSource("image/png", blue.bytes),
    ]);
    expect(picture.text).toContain("3 reference pictures");
  });

  test("/imagine names a reference that is not an image, and creates nothing", async () => {
    const surface = await start();
    const bytes = new TextEncoder().encode("<!doctype html><p>Please log in.</p>");
    await surface.imagine("a cat", { files: [await square("red", "png", "good.png"), { name: "cat.png", bytes }] });
    const note = await said(surface, /cat\.png/);
    await surface.idle();
    expect(note.text).toContain("I can't use `cat.png` as a reference: it is a web page, not an image.");
    expect(surface.world.calls).toEqual([]);
  });
}

function describeTroubles(start: StartSurface): void {
  test("/imagine names every wrong option in one sentence, and creates nothing", async () => {
    const surface = await start();
    await surface.imagine("a fox --ar 7:5 --count 9");
    const { text } = await said(surface, /I can't create that/);
    await surface.idle();
    expect(text.trim()).toMatch(
      /^I can't create that: the ratio `7:5` is not one of .*; the count `9` is not a number from 1 to 4\.$/,
    );
    expect(surface.pictures()).toEqual([]);
    expect(surface.world.calls).toEqual([]);
  });

  test("a failed image says why, and Retry creates only that one", async () => {
    const surface = await start();
    surface.world.meet(async (_, index) => (index === 1 ? { status: 400, body: WITHHELD } : undefined));
    await surface.imagine("a fox --count 2");
    const note = await said(surface, /is missing|No image for/);
    await surface.idle();
    expect(note.text).toMatch(/1 of 2 images for `a fox` is missing\.\s+The AI service's safety filter blocked/);
    expect(surface.pictures()).toHaveLength(1);

    await surface.press(note, "retry");
    const names = (await drawn(surface, 2)).map((picture) => picture.name);
    expect(names.toSorted()).toEqual(["a-fox-1.png", "a-fox-2.png"]);
    expect(surface.world.calls).toHaveLength(3);
    expect(surface.notes()).toEqual([]);
  });

  test("the bot reports a key that the gateway refuses in both headers in plain words without the key", async () => {
    const surface = await start();
    surface.world.meet(async () => ({
      status: 401,
      body: { error: { ...UNKNOWN_KEY.error, message: `Incorrect API key provided: ${GATEWAY_KEY}` } },
    }));
    await surface.imagine("a fox");
    const { text, buttons } = await said(surface, /is missing|No image for/);
    await surface.idle();
    expect(text).toContain("The AI service doesn't accept this bot's key for images.");
    expect(JSON.stringify(surface.notes())).not.toContain(GATEWAY_KEY);
    expect(buttons).toEqual([]);
    const keys = surface.world.calls.map(({ headers }) => [headers.authorization, headers[KEY_HEADER]]);
    expect(keys).toEqual([
      [`Bearer ${GATEWAY_KEY}`, undefined],
      [undefined, GATEWAY_KEY],
    ]);
  });
}

function describeButtons(
  start: StartSurface,
  { noOthers }: Differences,
  when: string,
  prepare: (surface: Surface) => Promise<void>,
): void {
  const another = noOthers === undefined ? "bob" : "ada";

  async function draw(): Promise<{ surface: Surface; picture: ShownPicture; bytes: Uint8Array; reference: GivenFile }> {
    const surface = await start();
    const reference = await square("red", "png", "red.png");
    await surface.imagine("a fox", { files: [reference], options: { ratio: "16:9" } });
    const { id } = await drawnOne(surface);
    await prepare(surface);
    const picture = await surface.until(() => surface.pictures().find((one) => one.id === id), "the first picture");
    return { surface, picture, bytes: await picture.read(), reference };
  }

  describe(`an image, ${when}`, () => {
    test("anyone can repeat an image, vary it and enlarge it, and it keeps its shape", async () => {
      const { surface, picture, bytes, reference } = await draw();
      await surface.press(picture, "again");
      const again = newest(await drawn(surface, 2));
      await surface.press(again, "vary", another);
      const varied = newest(await drawn(surface, 3));
      await surface.press(picture, "upscale");
      const enlarged = newest(await drawn(surface, 4));
      const [, ...calls] = surface.world.calls;
      expect(calls.map(({ body }) => body.generationConfig?.imageConfig)).toEqual([
        { aspectRatio: "16:9" },
        { aspectRatio: "16:9" },
        { aspectRatio: "16:9", imageSize: "2K" },
      ]);
      expect(await sourcesOf(calls[0])).toEqual(pngs(reference.bytes));
      expect(await sourcesOf(calls[1])).toEqual(pngs(await again.read(), reference.bytes));
      expect(await sourcesOf(calls[2])).toEqual(pngs(bytes));
      expect(again.text).toContain("`a fox` · 16:9");
      expect(varied.text).toMatch(noOthers === undefined ? /variation.*bob/i : /variation/i);
      expect(enlarged.text).toContain("2K");
      expect(enlarged.buttons).toContain("upscale");
    });

    test("the form of an image creates a changed one from it", async () => {
      const { surface, picture, bytes } = await draw();
      await surface.editPicture(picture, "a fox at night");
      const [, edited] = await drawn(surface, 2);
      const [, call] = surface.world.calls;
      expect(call && promptOf(call)).toBe("a fox at night");
      expect(await sourcesOf(call)).toEqual(pngs(bytes));
      expect(edited).toMatchObject({ altText: "a fox at night", buttons: picture.buttons });
    });

    test.skipIf(noOthers !== undefined)("only the person who asked can delete an image", async () => {
      const { surface, picture } = await draw();
      await surface.press(picture, "delete", "bob");
      await said(surface, /Only the person who asked, or a moderator/);
      await surface.idle();
      expect(surface.pictures()).toHaveLength(1);
      await surface.press(picture, "delete");
      await surface.until(() => surface.pictures().length === 0, "the picture to go");
      await surface.idle();
      expect(surface.world.calls).toHaveLength(1);
    });

    test.runIf(noOthers !== undefined)("the person at the page can delete an image", async () => {
      const { surface, picture } = await draw();
      await surface.press(picture, "delete");
      await surface.until(() => surface.pictures().length === 0, "the picture to go");
    });
  });
}
