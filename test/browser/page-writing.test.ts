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

  test("a person can start a chat from an example", async () => {
    await desk.tab.click(".examples button >> nth=0");
    const { event } = await desk.takeUp();
    expect(event).toMatchObject({ addressed: "bot", author: { name: "you" } });
    await desk.tab.waitForSelector(".sidebar a[aria-current]");
    expect(await desk.tab.locator(".message").count()).toBe(1);
  });

  test("the page reconnects after an outage, and sends the messages written meanwhile once", async () => {
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

  test("the page keeps a rejected message, and sends it again", async () => {
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

  test("the page sends pasted, dropped and selected files with previews, and shows them", async () => {
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

  test("the page sends a message as soon as its file has been uploaded", async () => {
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

  test("the page rejects a file that is too large before it sends any byte", async () => {
    const folder = await mkdtemp(join(tmpdir(), "palaver-large-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const path = join(folder, "big.bin");
    await writeFile(path, "");
    // A sparse file uses no disk space, and the browser's remote control does not have to transfer its bytes.
    await truncate(path, 21 * 1024 * 1024);
    await desk.tab.setInputFiles("main .attach input", path);
    await desk.tab.waitForSelector(".notice >> text=the limit is 20.0 MiB");
    expect(await desk.tab.locator(".uploads li").count()).toBe(0);
  });

  test("a person can save or cancel an edit without a keyboard, as on a phone", async () => {
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

  test("the up key edits the person's last message, and a button next to the message deletes it", async () => {
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

  test("the Enter key belongs to an input method that is composing", async () => {
    await desk.tab.fill(COMPOSER, "にほんご");
    await desk.tab.dispatchEvent(COMPOSER, "keydown", { key: "Enter", isComposing: true, bubbles: true });
    await desk.tab.dispatchEvent(COMPOSER, "keydown", { key: "Enter", keyCode: 229, bubbles: true });
    await desk.tab.press(COMPOSER, "Shift+Enter");
    expect(desk.page.events).toEqual([]);
    expect(await desk.tab.inputValue(COMPOSER)).toBe("にほんご\n");
  });

  test("a person can find a chat by keyboard, and the page keeps the selected theme", async () => {
    await desk.write("Plans for May");
    await desk.takeUp();
    await desk.tab.click(".new-chat");
    await desk.tab.waitForSelector(".welcome");
    await desk.write("something else");
    await desk.takeUp(2);
    await desk.tab.keyboard.press("Control+k");
    await desk.tab.waitForSelector(".search input:focus");
    await desk.tab.keyboard.type("plan");
    await desk.tab.keyboard.press("Enter");
    await desk.tab.waitForSelector("h1 >> text=Plans for May");
    expect(await desk.tab.locator(".lists a[aria-current]").count()).toBe(1);
    await desk.tab.keyboard.press("Escape");
    await eventually(() => desk.tab.locator(".lists a").count()).toBe(2);
    await desk.tab.click(".theme");
    await desk.tab.click(".theme");
    await desk.tab.reload();
    await desk.tab.waitForSelector("h1 >> text=Plans for May");
    expect(await desk.tab.evaluate("getComputedStyle(document.body).backgroundColor")).toBe("rgb(25, 24, 22)");
  });

  test("the page completes the name of a command", async () => {
    await desk.tab.locator(COMPOSER).pressSequentially("/he");
    await desk.tab.waitForSelector(".completion [aria-selected=true] >> text=/help");
    await desk.tab.keyboard.press("Enter");
    expect(await desk.tab.inputValue(COMPOSER)).toBe("/help ");
    await desk.tab.keyboard.press("Enter");
    expect(await desk.lastEvent(1)).toMatchObject({ kind: "command", name: "help", text: "" });
  });

  test("on a phone, the list of chats and the search are a drawer", async () => {
    await desk.tab.setViewportSize({ width: 390, height: 780 });
    await desk.write("hello there");
    await desk.takeUp();
    const sidebar = desk.tab.locator(".sidebar");
    await eventually(() => sidebar.isVisible()).toBe(false);
    await desk.tab.click(".menu");
    await desk.tab.click(".new-chat");
    await eventually(() => sidebar.isVisible()).toBe(false);
    await desk.tab.waitForSelector(".welcome");
    await desk.tab.keyboard.press("Control+k");
    await desk.tab.waitForSelector(".search input:focus");
    await desk.tab.keyboard.type("there");
    await desk.tab.click(".found-messages a");
    await eventually(() => sidebar.isVisible()).toBe(false);
    await eventually(() => desk.tab.locator("main .message.found").count()).toBe(1);
    expect(await desk.tab.evaluate("document.documentElement.scrollWidth")).toBe(390);
  });
});
