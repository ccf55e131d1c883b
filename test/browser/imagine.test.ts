import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { makeDataDir, type RunningService, startService } from "../../lab/support/service.ts";
import { describeWithBrowser, openBrowser } from "../support/browser.ts";
import { COMPOSER } from "../support/desk.ts";
import { eventually } from "../support/eventually.ts";

describeWithBrowser("drawing with the whole service, seen from a browser", () => {
  let folder: Awaited<ReturnType<typeof makeDataDir>>;
  let service: RunningService;
  beforeAll(async () => {
    folder = await makeDataDir();
    service = await startService(folder.path);
  });
  afterAll(async () => {
    await service.end("SIGKILL");
    await folder.remove();
  });

  async function open() {
    const browser = await openBrowser({ viewport: { width: 1200, height: 800 } });
    onTestFinished(browser.close);
    const tab = await browser.context.newPage();
    const problems: string[] = [];
    tab.on("pageerror", (error) => problems.push(String(error)));
    await tab.goto(service.url);
    await tab.waitForSelector(".welcome");
    const write = async (text: string) => {
      await tab.fill(COMPOSER, text);
      await tab.press(COMPOSER, "Enter");
    };
    return { tab, write, problems, dataDir: folder.path, pictures: () => tab.locator(".message.bot a.picture") };
  }

  test("the page shows two images one by one, and each button creates another one", async () => {
    const { tab, write, problems, pictures } = await open();
    await write("/imagine");
    await tab.waitForSelector(".picture-panel select >> nth=3");
    await tab.selectOption(".picture-choices select >> nth=0", "16:9");
    await tab.selectOption(".picture-choices select >> nth=2", "2");
    await write("a lighthouse, slowly");
    await tab.waitForSelector(".message.bot >> text=Creating");
    await eventually(() => pictures().count()).toBe(2);
    await eventually(() => tab.locator("text=Creating").count()).toBe(0);
    const image = pictures().first().locator("img");
    expect(await image.getAttribute("alt")).toBe("a lighthouse, slowly");
    expect(Number(await image.getAttribute("width")) / Number(await image.getAttribute("height"))).toBeCloseTo(
      16 / 9,
      1,
    );

    await tab.click(".message.bot .vary >> nth=0");
    await eventually(() => pictures().count()).toBe(3);
    // The buttons still work after the reload.
    await tab.reload();
    await tab.click(".message.bot .edit >> nth=0");
    await tab.waitForSelector(".uploads .basis");
    expect(await tab.inputValue(COMPOSER)).toBe("a lighthouse, slowly");
    await write("the same at night");
    await eventually(() => pictures().count()).toBe(4);
    await eventually(() => tab.locator(".message.bot").last().innerText()).toContain("1 reference picture");
    await tab.click(".message.bot .delete >> nth=0");
    await tab.click("dialog .danger");
    await eventually(() => pictures().count()).toBe(3);
    expect(problems).toEqual([]);
  });

  test("the bot forgets a chat that a person deletes", async () => {
    const { tab, write, dataDir } = await open();
    await write("My name is Zebulon.");
    await tab.waitForSelector(".message.bot .judgement");
    expect(readDatabase(dataDir)).toContain("Zebulon");
    const address = tab.url();
    await tab.click('[aria-label="Delete the chat"]');
    await tab.waitForSelector(".welcome");
    // The chat does not come back when the person leaves the page.
    await tab.goto("about:blank");
    await eventually(() => readDatabase(dataDir)).not.toContain("Zebulon");
    await tab.goto(address);
    await eventually(() => tab.url()).not.toBe(address);
    await tab.waitForSelector(".welcome");
  });
});

function readDatabase(dataDir: string): string {
  using database = new DatabaseSync(join(dataDir, "palaver.sqlite"), { readOnly: true });
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  return tables.map(({ name }) => JSON.stringify(database.prepare(`SELECT * FROM "${String(name)}"`).all())).join("\n");
}
