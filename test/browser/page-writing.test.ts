import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import sharp from "sharp";
import { expect, onTestFinished, test } from "vitest";
import { describeWithBrowser } from "../support/browser.ts";
import { COMPOSER, sitDown } from "../support/desk.ts";
import { eventually } from "../support/eventually.ts";

const signal = new AbortController().signal;

describeWithBrowser("writing at the local page in a browser", () => {
  const desk = sitDown();

  test("begins a chat from an example", async () => {
    await desk.tab.click(".examples button >> nth=0");
    const { event } = await desk.takeUp();
    expect(event).toMatchObject({ addressed: "bot", author: { name: "Ada" } });
    await desk.tab.waitForSelector(".sidebar a[aria-current]");
    expect(await desk.tab.locator(".message").count()).toBe(1);
  });

  test("goes on by itself after the server was away, and sends what was written meanwhile once", async () => {
    const folder = await mkdtemp(join(tmpdir(), "palaver-page-"));
    const database = () => new DatabaseSync(join(folder, "palaver.db"));
    await desk.visit({ database: database() });
    await desk.write("before");
    await desk.takeUp();
    await desk.stopServer();
    await desk.tab.waitForSelector(".connection.off");
    await desk.write("while you were away");
    await desk.tab.waitForSelector("text=Waiting for the connection");
    await desk.startServerAgain({ database: database() });
    await desk.tab.waitForSelector(".connection.on");
    const { event, sink } = await desk.takeUp();
    expect(event.text).toBe("while you were away");
    await sink.post({ markdown: "welcome back", buttons: [], streaming: false }, "n", signal);
    await desk.tab.waitForSelector("text=welcome back");
    expect(await desk.tab.locator(".message").count()).toBe(3);
    await eventually(() => desk.tab.locator(".message.pending").count()).toBe(0);
    await desk.stopServer();
    await rm(folder, { recursive: true, force: true });
  });

  test("keeps a message that was refused, and sends it again", async () => {
    desk.refuse(true);
    await desk.write("precious words");
    await desk.tab.waitForSelector(".problem >> text=could not store this");
    await desk.tab.reload();
    await desk.tab.waitForSelector(".message.failed");
    desk.refuse(false);
    await desk.tab.click("text=Send again");
    const { event } = await desk.takeUp();
    expect(event.text).toBe("precious words");
    await eventually(() => desk.tab.locator(".message").count()).toBe(1);
    expect(await desk.tab.locator(".problem").count()).toBe(0);
  });

  test("sends pasted, dropped and chosen files with previews, and shows them", async () => {
    const png = await sharp({ create: { width: 64, height: 48, channels: 3, background: "#55c4b2" } })
      .png()
      .toBuffer();
    await desk.tab.setInputFiles("main .attach input", [
      { name: "tea.png", mimeType: "image/png", buffer: png },
      { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") },
    ]);
    await desk.tab.waitForSelector(".uploads img");
    await desk.tab.evaluate(`{
      const data = new DataTransfer();
      data.items.add(new File(["pasted"], "pasted.txt", { type: "text/plain" }));
      const paste = new ClipboardEvent("paste", { clipboardData: data, bubbles: true });
      document.querySelector("${COMPOSER}").dispatchEvent(paste);
      document.querySelector("main .pane").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
    }`);
    await eventually(() => desk.tab.locator(".uploads li").count()).toBe(4);
    await desk.tab.click('[aria-label="Remove notes.txt"]');
    await desk.tab.waitForSelector(".send:not(:disabled)");
    await desk.tab.click("main .send");
    const { event } = await desk.takeUp();
    expect(event.attachments.map((file) => file.name)).toEqual(["tea.png", "pasted.txt", "pasted.txt"]);
    await desk.tab.waitForSelector(".message .picture img");
    const size = await desk.tab.evaluate(`(async () => {
      const image = document.querySelector(".picture img");
      await image.decode();
      return image.naturalWidth;
    })()`);
    expect(size).toBe(64);
    expect(await desk.tab.locator("a.file[download]").count()).toBe(2);
  });

  test("sends a message that was sent while its file was on the way, as soon as the file is there", async () => {
    const held = Promise.withResolvers<void>();
    await desk.tab.route("**/local/files", async (route) => {
      await held.promise;
      await route.continue();
    });
    const file = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") };
    await desk.tab.setInputFiles("main .attach input", [file]);
    await desk.write("Read this");
    await desk.tab.waitForSelector(".composer .file-wait");
    expect(desk.page.events).toEqual([]);
    held.resolve();
    const { event } = await desk.takeUp();
    expect(event.text).toBe("Read this");
    expect(event.attachments.map(({ name }) => name)).toEqual(["notes.txt"]);
    expect(await desk.tab.inputValue(COMPOSER)).toBe("");
  });

  test("says that a file is too large before a byte of it is sent", async () => {
    const folder = await mkdtemp(join(tmpdir(), "palaver-large-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const path = join(folder, "big.bin");
    await writeFile(path, "");
    // It takes no room on the disk, and its bytes need not go through the browser's remote control.
    await truncate(path, 21 * 1024 * 1024);
    await desk.tab.setInputFiles("main .attach input", path);
    await desk.tab.waitForSelector(".notice >> text=at most 20.0 MiB");
    expect(await desk.tab.locator(".uploads li").count()).toBe(0);
  });

  test("completes a mention, opens the thread it began, and goes on there", async () => {
    await desk.tab.click("text=general");
    await desk.tab.waitForSelector("h1 >> text=general");
    await desk.tab.locator(COMPOSER).pressSequentially("Hey @pal");
    await desk.tab.waitForSelector(".completion [aria-selected=true] >> text=Palaver");
    await desk.tab.keyboard.press("Enter");
    expect(await desk.tab.inputValue(COMPOSER)).toBe("Hey @Palaver ");
    await desk.tab.keyboard.type("who are you?");
    await desk.tab.keyboard.press("Enter");
    const { event, sink } = await desk.takeUp();
    expect(event).toMatchObject({ text: "Hey Palaver who are you?", reply: { channelId: "general" } });
    await desk.tab.waitForSelector(".thread");
    await sink.post({ markdown: "A bot, @Ben.", buttons: [], streaming: false }, "n", signal);
    await desk.tab.waitForSelector(".thread .message.bot .mention >> text=@Ben");
    await desk.tab.selectOption(".thread select", "ben");
    await desk.write("thanks", ".thread .composer textarea");
    expect((await desk.takeUp(2)).event).toMatchObject({ addressed: "open", author: { name: "Ben" } });
    await desk.tab.keyboard.press("Escape");
    await eventually(() => desk.tab.locator(".thread").count()).toBe(0);
    await desk.tab.waitForSelector(".thread-link >> text=2 replies");
  });

  test("an edit is saved or given up without a key, as on a phone", async () => {
    await desk.write("first");
    await desk.tab.waitForSelector(".message[data-id] >> text=first");
    const edit = async () => {
      await desk.tab.hover(".message[data-id]");
      await desk.tab.click('.message [aria-label="Edit"]');
      await desk.tab.fill(".editing textarea", "second");
    };
    await edit();
    await desk.tab.click(".editing button:text-is('Cancel')");
    await eventually(() => desk.tab.locator(".editing").count()).toBe(0);
    await edit();
    await desk.tab.click(".editing .primary");
    expect(await desk.lastEvent(2)).toMatchObject({ kind: "edited", text: "second" });
    await eventually(() => desk.tab.locator(".editing").count()).toBe(0);
  });

  test("edits the last own message with the up key and deletes it with its button", async () => {
    await desk.write("fisrt");
    await desk.takeUp();
    await desk.tab.waitForSelector(".message:not(.pending)");
    await desk.tab.press(COMPOSER, "ArrowUp");
    await desk.tab.waitForSelector(".editing textarea:focus");
    await desk.tab.fill(".editing textarea", "first");
    await desk.tab.keyboard.press("Enter");
    expect(await desk.lastEvent(2)).toMatchObject({ kind: "edited", text: "first" });
    await desk.tab.waitForSelector("text=edited");
    await desk.tab.waitForSelector(`${COMPOSER}:focus`);
    await desk.tab.hover(".message");
    await desk.tab.click('[aria-label="Delete"]');
    expect(await desk.lastEvent(3)).toMatchObject({ kind: "deleted" });
    await eventually(() => desk.tab.locator(".message").count()).toBe(0);
  });

  test("leaves the Enter key to an input method that is composing", async () => {
    await desk.tab.fill(COMPOSER, "にほんご");
    await desk.tab.dispatchEvent(COMPOSER, "keydown", { key: "Enter", isComposing: true, bubbles: true });
    await desk.tab.dispatchEvent(COMPOSER, "keydown", { key: "Enter", keyCode: 229, bubbles: true });
    await desk.tab.press(COMPOSER, "Shift+Enter");
    expect(desk.page.events).toEqual([]);
    expect(await desk.tab.inputValue(COMPOSER)).toBe("にほんご\n");
  });

  test("switches conversation by keys and keeps the theme that was chosen", async () => {
    await desk.tab.keyboard.press("Control+k");
    await desk.tab.waitForSelector(".switcher input:focus");
    await desk.tab.keyboard.type("rand");
    await desk.tab.keyboard.press("Enter");
    await desk.tab.waitForSelector("h1 >> text=random");
    await desk.tab.click(".theme");
    await desk.tab.click(".theme");
    await desk.tab.reload();
    await desk.tab.waitForSelector("h1 >> text=random");
    expect(await desk.tab.evaluate("getComputedStyle(document.body).backgroundColor")).toBe("rgb(25, 24, 22)");
  });

  test("fits a phone: the list is a drawer, a thread fills the screen", async () => {
    await desk.tab.setViewportSize({ width: 390, height: 780 });
    await eventually(() => desk.tab.locator(".sidebar").isVisible()).toBe(false);
    await desk.tab.click(".menu");
    await desk.tab.click("text=general");
    await eventually(() => desk.tab.locator(".sidebar").isVisible()).toBe(false);
    await desk.write("@Palaver hello");
    await desk.tab.waitForSelector(".thread");
    expect(await desk.tab.locator(".thread").evaluate((thread) => thread.getBoundingClientRect().width)).toBe(390);
    expect(await desk.tab.evaluate("document.documentElement.scrollWidth")).toBe(390);
    await desk.tab.click(".back");
    await eventually(() => desk.tab.locator(".thread").count()).toBe(0);
  });
});
