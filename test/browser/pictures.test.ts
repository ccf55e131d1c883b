import sharp from "sharp";
import { expect, test } from "vitest";
import type { Button, OutboundFile, ReplySink } from "../../src/port/sink.ts";
import { describeWithBrowser } from "../support/browser.ts";
import { COMPOSER, sitDown } from "../support/desk.ts";
import { eventually } from "../support/eventually.ts";
import { fakeMenu } from "../support/local-page.ts";

const signal = new AbortController().signal;
const WISH = {
  prompt: "a fox in the snow",
  options: { ratio: "16:9", size: "2K", model: "other-image", basis: "job.1" },
};

function toButtons(turnId: string): Button[] {
  const labels = { again: "Again", vary: "Vary", edit: "Edit…", upscale: "Upscale to 4K", delete: "Delete" } as const;
  return Object.entries(labels).map(([action, label]) => ({ action: action as keyof typeof labels, turnId, label }));
}

async function makePicture(options: Partial<OutboundFile> = {}): Promise<OutboundFile> {
  const bytes = await sharp({ create: { width: 1600, height: 900, channels: 3, background: "#0b7265" } })
    .png()
    .toBuffer();
  return { name: "fox.png", contentType: "image/png", bytes, altText: "a fox in the snow", ...options };
}

describeWithBrowser("pictures at the local page in a browser", () => {
  const desk = sitDown({ imagine: fakeMenu({ "job.1": WISH }) });
  const choice = (label: string) => desk.tab.locator(`.picture-choices label:has-text("${label}") select`);

  async function begin(): Promise<ReplySink> {
    await desk.write("hello");
    return (await desk.takeUp()).sink;
  }

  async function show(sink: ReplySink, number: number, options: Partial<OutboundFile> = {}): Promise<void> {
    const caption = { markdown: "`a fox in the snow` · 16:9", buttons: toButtons(`job.${number}`), streaming: false };
    await sink.upload([await makePicture(options)], caption, `n${number}`, signal);
    await desk.tab.waitForSelector(`.message.bot .picture >> nth=${number - 1}`);
  }

  test("a bare command opens the form, and options and attachments are sent with the words", async () => {
    await desk.write("/imagine");
    await desk.tab.waitForSelector("[aria-label='Picture to draw']");
    expect(desk.page.events).toEqual([]);
    await eventually(() => choice("Model").inputValue()).toBe("usual-image");
    // With the keyboard only: the text field has the focus, and the options come before it.
    await eventually(() => desk.tab.evaluate("document.activeElement?.ariaLabel")).toBe("Describe the image");
    await choice("Shape").selectOption("16:9");
    await choice("Pictures").selectOption("4");
    await desk.tab.check(".picture-cover input");
    const { bytes } = await makePicture();
    const file = { name: "reference.png", mimeType: "image/png", buffer: Buffer.from(bytes) };
    await desk.tab.setInputFiles("main .attach input", [file, { ...file, name: "other.png" }]);
    await desk.tab.waitForSelector("text=Starts from the 2 attached images.");
    await desk.tab.click('[aria-label="Remove other.png"]');
    await eventually(() => desk.tab.locator(".uploads progress").count()).toBe(0);
    await desk.write("a fox --size 2K");
    expect(await desk.lastEvent(1)).toMatchObject({
      kind: "command",
      name: "imagine",
      text: "a fox --size 2K",
      options: { ratio: "16:9", count: "4", spoiler: "true" },
      attachments: [{ name: "reference.png" }],
    });
    await desk.tab.waitForSelector(".message .order >> text=16:9 · 4 images · covered");
    expect(await desk.tab.locator(".picture-panel").count()).toBe(0);
  });

  test("the form opens and closes with its button and Escape, and keeps the words", async () => {
    await desk.tab.fill(COMPOSER, "a fox");
    await desk.tab.click('[aria-label="Create an image"]');
    await desk.tab.waitForSelector('[aria-label="Create an image"][aria-pressed=true]');
    await desk.tab.keyboard.press("Escape");
    await eventually(() => desk.tab.locator(".picture-panel").count()).toBe(0);
    expect(await desk.tab.inputValue(COMPOSER)).toBe("a fox");
    await desk.tab.fill(COMPOSER, "");
    await desk.tab.click('[aria-label="Create an image"]');
    await desk.tab.waitForSelector(".picture-panel");
    expect(await desk.tab.locator("main .send").isDisabled()).toBe(true);
  });

  test("the page does not offer the form if it can create no image", async () => {
    await desk.visit({});
    expect(await desk.tab.locator('[aria-label="Create an image"]').count()).toBe(0);
    await desk.write("/imagine");
    expect(await desk.lastEvent(1)).toMatchObject({ kind: "command", name: "imagine", text: "" });
  });

  test("the page shows an image within the pane, and in full size over it until Escape", async () => {
    const sink = await begin();
    await show(sink, 1);
    await show(sink, 2, { altText: "another fox" });
    const image = desk.tab.locator(".message.bot .picture img").first();
    expect(await image.getAttribute("alt")).toBe("a fox in the snow");
    const { width = 0 } = (await image.boundingBox()) ?? {};
    expect(width).toBeGreaterThan(400);
    expect(await desk.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await desk.tab.click(".message.bot .picture >> nth=0");
    await desk.tab.waitForSelector("dialog.lightbox[open] img[alt='a fox in the snow']");
    await desk.tab.keyboard.press("ArrowRight");
    await desk.tab.waitForSelector("dialog.lightbox[open] img[alt='another fox']");
    await desk.tab.click(".lightbox img");
    await desk.tab.waitForSelector(".stage.actual");
    await desk.tab.keyboard.press("Escape");
    await eventually(() => desk.tab.locator("dialog").count()).toBe(0);
    expect(desk.page.events).toHaveLength(1);
  });

  test("the page shows several images of one message side by side, whatever their number and shape", async () => {
    const make = (width: number, height: number) =>
      sharp({ create: { width, height, channels: 3, background: "#b4532a" } })
        .png()
        .toBuffer();
    const files = await Promise.all([make(1600, 900), make(900, 1600), make(60, 60), make(1600, 900)]);
    const toFile = (buffer: Buffer, index: number) => ({ name: `fox-${index}.png`, mimeType: "image/png", buffer });
    await desk.tab.setInputFiles("main .attach input", files.map(toFile));
    await eventually(() => desk.tab.locator(".uploads progress").count()).toBe(0);
    await desk.write("/imagine a fox");
    await desk.tab.waitForSelector(".message[data-id] .picture >> nth=3");
    const { height = 0 } = (await desk.tab.locator(".message .files").boundingBox()) ?? {};
    expect(height).toBeGreaterThan(100);
    expect(height).toBeLessThan(400);
  });

  test("a notice does not cover the form or its attachments", async () => {
    await desk.tab.click('[aria-label="Create an image"]');
    await desk.tab.waitForSelector(".picture-panel");
    const empty = { name: "empty.png", mimeType: "image/png", buffer: Buffer.alloc(0) };
    await desk.tab.setInputFiles("main .attach input", [empty]);
    const notice = await desk.tab.locator(".notice >> text=is empty").boundingBox();
    const composer = await desk.tab.locator("main .composer").boundingBox();
    expect((notice?.y ?? 0) + (notice?.height ?? 0)).toBeLessThan(composer?.y ?? 0);
  });

  test("an image's buttons refer to its own id, and deleting needs a confirmation", async () => {
    const sink = await begin();
    await show(sink, 1);
    for (const [index, action] of ["again", "vary", "upscale"].entries()) {
      await desk.tab.click(`.message.bot .${action}`);
      expect(await desk.lastEvent(index + 2)).toMatchObject({ kind: "action", action, turnId: "job.1" });
    }
    await desk.tab.click(".message.bot .delete");
    await desk.tab.click("dialog >> text=Cancel");
    await desk.tab.click(".message.bot .delete");
    await desk.tab.click("dialog .danger");
    expect(await desk.lastEvent(5)).toMatchObject({ kind: "action", action: "delete", turnId: "job.1" });
  });

  test("a person changes an image in the form with its original values, and the composer's text returns afterwards", async () => {
    const sink = await begin();
    await show(sink, 1);
    await desk.tab.fill(COMPOSER, "half a thought");
    await desk.tab.click(".message.bot .edit");
    await desk.tab.waitForSelector(".uploads .basis img");
    expect(await desk.tab.inputValue(COMPOSER)).toBe("a fox in the snow");
    await eventually(() => choice("Model").inputValue()).toBe("other-image");
    expect([await choice("Shape").inputValue(), await choice("Size").inputValue()]).toEqual(["16:9", "2K"]);
    await desk.write("the same at night");
    expect(await desk.lastEvent(2)).toMatchObject({
      kind: "command",
      text: "the same at night",
      options: { ratio: "16:9", size: "2K", model: "other-image", basis: "job.1" },
    });
    await eventually(() => desk.tab.inputValue(COMPOSER)).toBe("half a thought");
    // The request shows its reference image.
    await desk.tab.waitForSelector(".order img");
  });

  test("the page reports an image that is no longer stored", async () => {
    const sink = await begin();
    await show(sink, 1);
    await sink.upload(
      [await makePicture()],
      { markdown: "old", buttons: toButtons("job.9"), streaming: false },
      "old",
      signal,
    );
    await desk.tab.click(".message.bot .edit >> nth=1");
    await desk.tab.waitForSelector(".notice >> text=too old");
    expect(await desk.tab.locator(".picture-panel").count()).toBe(0);
  });

  test("a screen reader announces images in progress after the other messages, and their result", async () => {
    const sink = await begin();
    const stop: Button[] = [{ action: "stop", turnId: "job.0", label: "Stop" }];
    const { id } = await sink.post({ markdown: "Drawing … 1 of 2", buttons: stop, streaming: false }, "status", signal);
    await desk.tab.waitForSelector(".message .working");
    await show(sink, 1);
    const last = () => desk.tab.locator(".timeline .message").last().innerText();
    await eventually(last).toContain("Drawing");
    const retry: Button[] = [{ action: "retry", turnId: "job.0", label: "Retry" }];
    await sink.edit(id, { markdown: "1 of 2 pictures is missing.", buttons: retry, streaming: false }, signal);
    await eventually(last).toContain("is missing");
    expect(await desk.tab.locator(".working").count()).toBe(0);
    await desk.tab.reload();
    await desk.tab.waitForSelector(".message .retry");
    expect(await last()).toContain("is missing");
  });

  test("an image is covered until a user opens it", async () => {
    const sink = await begin();
    await show(sink, 1, { isSpoiler: true });
    expect(await desk.tab.locator(".picture.covered img").getAttribute("alt")).toBe("");
    const sizeOf = async (selector: string) => {
      const box = await desk.tab.locator(selector).boundingBox();
      return [box?.width, box?.height];
    };
    const covered = await sizeOf(".picture.covered");
    expect(covered).toEqual(await sizeOf(".picture.covered img"));
    await desk.tab.click(".picture.covered");
    await desk.tab.waitForSelector("a.picture img[alt='a fox in the snow']");
    expect(await sizeOf("a.picture")).toEqual(covered);
    expect(await desk.tab.locator("dialog").count()).toBe(0);
  });

  test("an image and its form fit a phone", async () => {
    const sink = await begin();
    await show(sink, 1);
    await desk.tab.setViewportSize({ width: 360, height: 740 });
    await desk.tab.click('[aria-label="Create an image"]');
    await desk.tab.waitForSelector(".picture-panel select >> nth=3");
    expect(await desk.tab.evaluate("document.documentElement.scrollWidth")).toBe(360);
    const panel = await desk.tab.locator(".picture-panel").evaluate((each) => each.scrollWidth <= each.clientWidth);
    expect(panel).toBe(true);
  });
});
