import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { drawn, drawnOne, newest, pngs, promptOf, said, sourcesOf, square, toSource } from "./imagine-evidence.ts";
import type { GivenFile, ShownPicture, Surface } from "./imagine-surface.ts";
import { GATEWAY_KEY, KEY_HEADER } from "./picture-world.ts";

export type StartSurface = () => Promise<Surface>;

const WITHHELD = {
  error: { type: "invalid_request_error", code: "content_policy_violation", message: "", param: null },
};
const UNKNOWN_KEY = { error: { type: "invalid_request_error", code: "invalid_api_key", message: "", param: null } };

/** Tests what `/imagine` does wherever it is offered, against each surface with its own SDK. */
export function imagineContract(name: string, start: StartSurface): void {
  describe(`/imagine on ${name}`, () => {
    describeDrawing(start);
    describeReferences(start);
    describeTroubles(start);
    describeButtons(start, "as soon as it stands there", async () => {});
    describeButtons(start, "after the bot was started again", (surface) => surface.restart());
  });
}

function describeDrawing(start: StartSurface): void {
  test("a prompt becomes a picture with words for those who cannot see it, and buttons", async () => {
    const surface = await start();
    await surface.imagine("a fox in the snow");
    const picture = await drawnOne(surface);
    expect(picture).toMatchObject({ name: "a-fox-in-the-snow.png", altText: "a fox in the snow" });
    expect(picture.text).toMatch(/drawn from your words.*a fox in the snow.*sandbox-image/s);
    expect(picture.buttons).toEqual(["again", "vary", "edit", "upscale", "delete"]);
    expect(await sharp(await picture.read()).metadata()).toMatchObject({ format: "png", width: 1024, height: 1024 });
    expect(surface.notes()).toEqual([]);
  });

  test("four pictures come one by one, each as soon as it is drawn", async () => {
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

  test("what is chosen in the text arrives on the wire, and in the picture", async () => {
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

  test("what is chosen in fields of their own arrives on the wire too", async () => {
    const surface = await start();
    await surface.imagine("a fox", { options: { ratio: "9:16", count: "2" } });
    await drawn(surface, 2);
    const configs = surface.world.calls.map(({ body }) => body.generationConfig?.imageConfig);
    expect(configs).toEqual([{ aspectRatio: "9:16" }, { aspectRatio: "9:16" }]);
  });

  test("asked for in words, a picture is drawn by the model, and the next words start from it", async () => {
    const surface = await start();
    await surface.say("draw a red boat");
    const first = await drawnOne(surface);
    await surface.say("now at night");
    const [, second] = await drawn(surface, 2);
    const [, call] = surface.world.calls;
    expect(call && promptOf(call)).toContain("now at night");
    expect(await sourcesOf(call)).toEqual(pngs(await first.read()));
    expect(second?.text).toContain("1 reference picture");
  });

  test("a picture that the chat model paints itself is posted, and the next words start from it", async () => {
    const surface = await start();
    const { bytes } = await square("red", "png", "red.png");
    surface.world.paint(bytes);
    await surface.say("paint a red boat");
    const picture = await drawnOne(surface);
    expect(picture).toMatchObject({ name: "paint-a-red-boat.png", altText: "paint a red boat" });
    expect(Buffer.from(await picture.read())).toEqual(Buffer.from(bytes));
    expect(picture.buttons).toEqual(["again", "vary", "edit", "upscale", "delete"]);
    expect(surface.notes().map(({ text }) => text)).toEqual([expect.stringContaining("The answer is a picture.")]);
    await surface.say("now at night");
    await drawn(surface, 2);
    expect(await sourcesOf(surface.world.calls[0])).toEqual(pngs(bytes));
  });
}

function describeReferences(start: StartSurface): void {
  test("a picture that somebody says a word about is what the model draws from", async () => {
    const surface = await start();
    const red = await square("red", "webp", "red.png");
    await surface.say("now at night", [red]);
    await drawnOne(surface);
    expect(await sourcesOf(surface.world.calls[0])).toEqual([toSource("image/webp", red.bytes)]);
  });

  test("references arrive in order, each with the type of its bytes, whatever its name says", async () => {
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

  test("a file that is no picture is named, and nothing is drawn", async () => {
    const surface = await start();
    const bytes = new TextEncoder().encode("<!doctype html><p>Please log in.</p>");
    await surface.imagine("a cat", { files: [await square("red", "png", "good.png"), { name: "cat.png", bytes }] });
    const note = await said(surface, /cat\.png/);
    await surface.idle();
    expect(note.text).toContain("`cat.png` cannot be used as a reference: it is a web page and no picture.");
    expect(surface.world.calls).toEqual([]);
  });
}

function describeTroubles(start: StartSurface): void {
  test("whatever is wrong with the options is said in one sentence, and nothing is drawn", async () => {
    const surface = await start();
    await surface.imagine("a fox --ar 7:5 --count 9");
    const { text } = await said(surface, /I cannot draw that/);
    await surface.idle();
    expect(text.trim()).toMatch(
      /^I cannot draw that: the ratio `7:5` is not one of .*; the count `9` is not a number from 1 to 4\.$/,
    );
    expect(surface.pictures()).toEqual([]);
    expect(surface.world.calls).toEqual([]);
  });

  test("a picture that was not drawn says why, and Retry brings that one alone", async () => {
    const surface = await start();
    surface.world.meet(async (_, index) => (index === 1 ? { status: 400, body: WITHHELD } : undefined));
    await surface.imagine("a fox --count 2");
    const note = await said(surface, /is missing|No picture of/);
    await surface.idle();
    expect(note.text).toMatch(/1 of 2 pictures of `a fox` is missing\.\s+The AI service's safety filter refused/);
    expect(surface.pictures()).toHaveLength(1);

    await surface.press(note, "retry");
    const names = (await drawn(surface, 2)).map((picture) => picture.name);
    expect(names.toSorted()).toEqual(["a-fox-1.png", "a-fox-2.png"]);
    expect(surface.world.calls).toHaveLength(3);
    expect(surface.notes()).toEqual([]);
  });

  test("a key that is refused in both headers ends in plain words that do not hold it", async () => {
    const surface = await start();
    surface.world.meet(async () => ({
      status: 401,
      body: { error: { ...UNKNOWN_KEY.error, message: `Incorrect API key provided: ${GATEWAY_KEY}` } },
    }));
    await surface.imagine("a fox");
    const { text, buttons } = await said(surface, /is missing|No picture of/);
    await surface.idle();
    expect(text).toContain("Refused: the AI service does not accept this bot's key for pictures.");
    expect(JSON.stringify(surface.notes())).not.toContain(GATEWAY_KEY);
    expect(buttons).toEqual([]);
    const keys = surface.world.calls.map(({ headers }) => [headers.authorization, headers[KEY_HEADER]]);
    expect(keys).toEqual([
      [`Bearer ${GATEWAY_KEY}`, undefined],
      [undefined, GATEWAY_KEY],
    ]);
  });
}

function describeButtons(start: StartSurface, when: string, prepare: (surface: Surface) => Promise<void>): void {
  async function draw(): Promise<{ surface: Surface; picture: ShownPicture; bytes: Uint8Array; reference: GivenFile }> {
    const surface = await start();
    const reference = await square("red", "png", "red.png");
    await surface.imagine("a fox", { files: [reference], options: { ratio: "16:9" } });
    const { id } = await drawnOne(surface);
    await prepare(surface);
    const picture = await surface.until(() => surface.pictures().find((one) => one.id === id), "the first picture");
    return { surface, picture, bytes: await picture.read(), reference };
  }

  describe(`a picture, ${when},`, () => {
    test("is drawn again, varied and enlarged, in the shape it has, by anybody", async () => {
      const { surface, picture, bytes, reference } = await draw();
      await surface.press(picture, "again");
      const again = newest(await drawn(surface, 2));
      await surface.press(again, "vary", "bob");
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
      expect(varied.text).toMatch(/variation.*bob/i);
      expect(enlarged.text).toContain("2K");
      expect(enlarged.buttons).toContain("upscale");
    });

    test("is edited with a form, from itself", async () => {
      const { surface, picture, bytes } = await draw();
      await surface.edit(picture, "a fox at night");
      const [, edited] = await drawn(surface, 2);
      const [, call] = surface.world.calls;
      expect(call && promptOf(call)).toBe("a fox at night");
      expect(await sourcesOf(call)).toEqual(pngs(bytes));
      expect(edited).toMatchObject({ altText: "a fox at night", buttons: picture.buttons });
    });

    test("is taken back by the one who asked, and by nobody else", async () => {
      const { surface, picture } = await draw();
      await surface.press(picture, "delete", "bob");
      await said(surface, /Only the person who asked for this picture/);
      await surface.idle();
      expect(surface.pictures()).toHaveLength(1);
      await surface.press(picture, "delete");
      await surface.until(() => surface.pictures().length === 0, "the picture to go");
      await surface.idle();
      expect(surface.world.calls).toHaveLength(1);
    });
  });
}
