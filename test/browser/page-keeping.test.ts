import { expect, test } from "vitest";
import { describeWithBrowser } from "../support/browser.ts";
import { COMPOSER, sitDown } from "../support/desk.ts";
import { eventually } from "../support/eventually.ts";
import { fakeMenu } from "../support/local-page.ts";

const signal = new AbortController().signal;

describeWithBrowser("saved and deleted content at the local page in a browser", () => {
  const desk = sitDown();

  async function paste(text: string): Promise<void> {
    await desk.tab.evaluate(`{
      const data = new DataTransfer();
      data.setData("text/plain", ${text});
      const paste = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
      document.querySelector("${COMPOSER}").dispatchEvent(paste);
    }`);
  }

  test("a draft returns after a reload with its files and its form, in its own chat", async () => {
    await desk.visit({ imagine: fakeMenu() });
    await desk.tab.setInputFiles("main .attach input", {
      name: "notes.txt",
      mimeType: "text/plain",
      buffer: Buffer.from("notes"),
    });
    await eventually(() => desk.tab.locator(".uploads progress").count()).toBe(0);
    await desk.tab.click('[aria-label="Create an image"]');
    await desk.tab.selectOption(".picture-choices select >> nth=0", "9:16");
    await desk.tab.fill(COMPOSER, "half a thought");
    const chat = desk.tab.url();
    await desk.tab.click(".new-chat");
    await eventually(() => desk.tab.inputValue(COMPOSER)).toBe("");
    await desk.tab.fill(COMPOSER, "another thought");
    await desk.tab.reload();
    await desk.tab.waitForSelector(".welcome");
    expect(await desk.tab.inputValue(COMPOSER)).toBe("another thought");
    await desk.tab.goto(chat);
    await desk.tab.waitForSelector(".picture-panel");
    expect(await desk.tab.inputValue(COMPOSER)).toBe("half a thought");
    expect(await desk.tab.inputValue(".picture-choices select >> nth=0")).toBe("9:16");
    await desk.tab.press(COMPOSER, "Enter");
    expect(await desk.lastEvent(1)).toMatchObject({
      text: "half a thought",
      attachments: [{ name: "notes.txt" }],
      options: { ratio: "9:16" },
    });
    await desk.tab.waitForSelector(".message:not(.pending) .order");
    await desk.tab.reload();
    await desk.tab.waitForSelector(".message");
    expect(await desk.tab.inputValue(COMPOSER)).toBe("");
  });

  test("once the page is connected, it sends a message that was written before, with its files", async () => {
    const connection = Promise.withResolvers<void>();
    await desk.tab.route("**/local/events*", async (route) => {
      await connection.promise;
      await route.continue();
    });
    await desk.tab.reload();
    await desk.tab.setInputFiles("main .attach input", {
      name: "notes.txt",
      mimeType: "text/plain",
      buffer: Buffer.from("notes"),
    });
    await eventually(() => desk.tab.locator(".uploads progress").count()).toBe(0);
    await desk.write("too early");
    await desk.tab.waitForSelector("text=Sending once the page is connected…");
    connection.resolve();
    expect(await desk.lastEvent(1)).toMatchObject({ text: "too early", attachments: [{ name: "notes.txt" }] });
    expect(await desk.tab.inputValue(COMPOSER)).toBe("");
  });

  test("two tabs each keep their unsent messages, and send them once", async () => {
    await desk.write("first of all");
    await desk.takeUp();
    const other = await desk.tab.context().newPage();
    await other.goto(desk.tab.url());
    await other.waitForSelector(".message");
    await desk.stopServer();
    await desk.tab.waitForSelector(".connection.off");
    for (const [tab, text] of [
      [desk.tab, "from the first tab"],
      [other, "from the second tab"],
    ] as const) {
      await tab.fill(COMPOSER, text);
      await tab.press(COMPOSER, "Enter");
      await tab.waitForSelector(".message.waiting");
    }
    await other.close();
    await desk.startServerAgain({ database: desk.page.database });
    await desk.tab.reload();
    await eventually(() => desk.page.events.length).toBe(2);
    const texts = desk.page.events.map((event) => (event.kind === "message" ? event.text : ""));
    expect(texts.toSorted()).toEqual(["from the first tab", "from the second tab"]);
    await eventually(() => desk.tab.locator(".message:not(.pending)").count()).toBe(3);
    expect(await desk.tab.evaluate("Object.keys(localStorage).filter((key) => key.includes('pending'))")).toEqual([]);
  });

  test("a pasted text that is too long becomes a file, and the page does not send a typed text that is too long", async () => {
    await paste("'あ'.repeat(20_001)");
    await desk.tab.waitForSelector(".notice >> text=attached as a file");
    await eventually(() => desk.tab.locator(".uploads progress").count()).toBe(0);
    expect(await desk.tab.inputValue(COMPOSER)).toBe("");
    await desk.tab.fill(COMPOSER, "x".repeat(20_500));
    await desk.tab.waitForSelector("text=20,500 of 20,000 characters");
    await desk.tab.press(COMPOSER, "Enter");
    await desk.write("what does it say?");
    const event = await desk.lastEvent(1);
    expect(event).toMatchObject({
      text: "what does it say?",
      attachments: [{ name: "pasted.txt", sizeBytes: 60_003 }],
    });
  });

  test("a file with a misleading image name has no broken preview", async () => {
    const buffer = Buffer.from("no picture");
    await desk.tab.setInputFiles("main .composer input[type=file]", { name: "a.png", mimeType: "image/png", buffer });
    await eventually(() => desk.tab.locator(".uploads svg:not(button svg)").count()).toBe(1);
    expect(await desk.tab.locator(".uploads img").count()).toBe(0);
    await desk.write("what is it?");
    expect(await desk.lastEvent(1)).toMatchObject({ attachments: [{ name: "a.png" }] });
  });

  test("a message that waits for the connection is as tall as a sent one", async () => {
    await desk.write("one");
    await eventually(() => desk.tab.locator(".message:not(.pending)").count()).toBe(1);
    await desk.stopServer();
    await desk.write("two");
    await desk.tab.waitForSelector(".message.waiting");
    const sizes = await desk.tab
      .locator(".message message-body")
      .evaluateAll((found) => found.map((each) => getComputedStyle(each).fontSize));
    expect(new Set(sizes).size).toBe(1);
    expect(sizes.length).toBe(2);
  });

  test("a person can stop an answer before it has any text", async () => {
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    expect(await desk.tab.locator(".stop-all").count()).toBe(0);
    await sink.progress("thinking", signal, { action: "stop", turnId: "turn-1", label: "Stop" });
    await desk.tab.click('main [aria-label="Stop the answer"]');
    expect(await desk.lastEvent(2)).toMatchObject({ kind: "action", action: "stop", turnId: "turn-1" });
    await desk.tab.press(COMPOSER, "Escape");
    expect(await desk.lastEvent(3)).toMatchObject({ kind: "action", action: "stop", turnId: "turn-1" });
  });

  test("a rating stays pressed, and the last one counts", async () => {
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    const buttons = [
      { action: "good" as const, turnId: "t", label: "Good answer" },
      { action: "bad" as const, turnId: "t", label: "Bad answer" },
    ];
    await sink.post({ markdown: "hi", buttons, streaming: false }, "n", signal);
    await desk.tab.click('[aria-label="Good answer"]');
    await desk.tab.waitForSelector('[aria-label="Good answer"][aria-pressed=true]');
    expect(await desk.lastEvent(2)).toMatchObject({ kind: "action", action: "good", turnId: "t" });
    await desk.tab.click('[aria-label="Bad answer"]');
    await desk.tab.waitForSelector('[aria-label="Bad answer"][aria-pressed=true]');
    await desk.tab.waitForSelector('[aria-label="Good answer"][aria-pressed=false]');
  });

  test("a bad rating can have a reason, and counts without one", async () => {
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    const buttons = [{ action: "bad" as const, turnId: "t", label: "Bad answer" }];
    await sink.post({ markdown: "hi", buttons, streaming: false }, "n", signal);
    await desk.tab.click('[aria-label="Bad answer"]');
    const field = desk.tab.locator('[aria-label="What was wrong?"]');
    await field.waitFor();
    const judged = { kind: "action", action: "bad", turnId: "t" };
    expect(await desk.lastEvent(2)).toMatchObject(judged);
    expect(await desk.lastEvent(2)).not.toHaveProperty("reason");
    await field.fill(" the wrong year ");
    await field.press("Enter");
    await eventually(() => field.count()).toBe(0);
    expect(await desk.lastEvent(3)).toMatchObject({ ...judged, reason: "the wrong year" });
  });

  test("the page asks for a reason even if it shows the rating before the server answers", async () => {
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    const buttons = [{ action: "bad" as const, turnId: "t", label: "Bad answer" }];
    await sink.post({ markdown: "hi", buttons, streaming: false }, "n", signal);
    await desk.tab.route("**/action", async (route) => {
      const response = await route.fetch();
      await desk.tab.waitForSelector('[aria-label="Bad answer"][aria-pressed=true]');
      await route.fulfill({ response });
    });
    await desk.tab.click('[aria-label="Bad answer"]');
    await desk.tab.waitForSelector('[aria-label="What was wrong?"]');
  });

  test("a bare /forget asks for its scope before anything is sent", async () => {
    await desk.write("/forget");
    await desk.tab.waitForSelector("dialog[open]");
    await desk.tab.keyboard.press("Escape");
    expect(desk.page.events).toEqual([]);
    await desk.tab.press(COMPOSER, "Enter");
    await desk.tab.click("dialog >> text=This conversation");
    expect(await desk.lastEvent(1)).toMatchObject({ kind: "command", name: "forget", text: "conversation" });
    await eventually(() => desk.tab.inputValue(COMPOSER)).toBe("");
  });

  test("forgetting everything needs a confirmation before it is sent", async () => {
    await desk.write("/forget me");
    await desk.tab.waitForSelector("dialog[open]");
    expect(desk.page.events).toEqual([]);
    await desk.tab.click("dialog >> text=Everything about me");
    expect(await desk.lastEvent(1)).toMatchObject({ kind: "command", name: "forget", text: "me for good" });
  });

  test("an unsent command keeps its chat in the list until everything is forgotten", async () => {
    desk.refuse(true);
    await desk.write("/help");
    await desk.tab.waitForSelector(".message.failed");
    desk.refuse(false);
    await desk.tab.click(".new-chat");
    await desk.tab.waitForSelector(".welcome");
    await desk.write("hello");
    await desk.takeUp();
    const titles = () => desk.tab.locator(".sidebar a[href^='#chat']").allInnerTexts();
    await eventually(titles).toEqual(["hello", "New chat"]);
    await desk.write("/forget me for good");
    await eventually(titles).toEqual(["hello"]);
    expect(await desk.tab.evaluate("Object.keys(localStorage).filter((key) => key.includes('pending'))")).toEqual([]);
  });

  test("a person can rename and delete a chat from its header", async () => {
    await desk.write("hello");
    await desk.takeUp();
    await desk.tab.click('[aria-label="Rename the chat"]');
    await desk.tab.fill("dialog input", "Plans for May");
    await desk.tab.keyboard.press("Enter");
    await desk.tab.waitForSelector(".sidebar a >> text=Plans for May");
    await desk.tab.fill(COMPOSER, "a thought that goes with it");
    const deleteIt = async () => {
      await desk.tab.click('[aria-label="Delete the chat"]');
      await desk.tab.waitForSelector(".welcome");
      await desk.tab.waitForSelector(".sidebar a >> text=Plans for May", { state: "detached" });
    };
    await deleteIt();
    await desk.tab.click("text=Undo");
    await desk.tab.waitForSelector("main .message >> text=hello");
    expect(await desk.tab.inputValue(COMPOSER)).toBe("a thought that goes with it");
    await deleteIt();
    await desk.tab.goto("about:blank");
    expect(await desk.lastEvent(2)).toMatchObject({ kind: "command", name: "forget", text: "conversation" });
    await desk.tab.goto(desk.page.url);
    await desk.tab.waitForSelector(".welcome");
    expect(await desk.tab.locator(".sidebar >> text=Plans for May").count()).toBe(0);
    expect(await desk.tab.evaluate("Object.keys(localStorage).filter((key) => key.includes('draft'))")).toEqual([]);
  });
});
