import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import sharp from "sharp";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { makeDataDir, startService } from "../../lab/support/service.ts";
import { type Browser, describeWithBrowser, openBrowser } from "../support/browser.ts";
import { COMPOSER } from "../support/desk.ts";
import { eventually } from "../support/eventually.ts";
import { startFaultServer } from "../support/fault-server.ts";
import { connectLocal, isBot, isFinal } from "../support/local-client.ts";

describeWithBrowser("the service, seen from a browser", () => {
  let browser: Browser;
  beforeAll(async () => void (browser = await openBrowser({ viewport: { width: 1200, height: 800 } })));
  afterAll(() => browser.close());

  async function open(env: Record<string, string> = {}) {
    const { path, remove } = await makeDataDir();
    const service = await startService(path, env);
    const tab = await browser.context.newPage();
    await tab.goto(service.url);
    await tab.waitForSelector(COMPOSER);
    onTestFinished(async () => {
      await tab.close();
      await service.end("SIGKILL");
      await remove();
    });
    const write = async (text: string) => {
      await tab.fill(COMPOSER, text);
      await tab.press(COMPOSER, "Enter");
    };
    const answers = () => tab.locator(".message.bot message-body");
    return { service, tab, write, answers };
  }

  test("an answer grows in many steps, and a reload in the middle misses nothing", async () => {
    const { tab, write, answers } = await open();
    await write("At 15 tokens per second, count to 60");
    const steps = new Set<number>();
    await eventually(async () => {
      steps.add((await answers().last().innerText()).length);
      return steps.size;
    }).toBeGreaterThanOrEqual(6);
    await tab.reload();
    const numbers = Array.from({ length: 60 }, (_, index) => index + 1);
    await eventually(async () => (await answers().last().innerText()).match(/\d+/g)?.map(Number)).toEqual(numbers);
    await eventually(() => tab.locator(".caret").count()).toBe(0);
    expect(await answers().count()).toBe(1);
  });

  test("the model sees an attached image", async () => {
    const { tab, write, answers } = await open();
    const picture = await sharp({ create: { width: 320, height: 200, channels: 3, background: "#d02020" } })
      .png()
      .toBuffer();
    await tab.setInputFiles("main .composer input[type=file]", {
      name: "a picture.png",
      mimeType: "image/png",
      buffer: picture,
    });
    await tab.waitForSelector(".composer img");
    await write("What is in this picture?");
    await eventually(() => answers().last().innerText()).toMatch(/320.*200/s);
    await eventually(() => answers().last().innerText()).toMatch(/red/i);
  });

  test("a 3,000-word answer with code, tables and Japanese arrives whole in several messages, code and tables line by line", async () => {
    const source = makeLongText();
    expect(source.match(/\w+/g)?.length).toBeGreaterThan(3_000);
    const upstream = await startFaultServer((response) => void writeInPieces(response, source));
    const env = { GATEWAY_BASE_URL: upstream.url, GATEWAY_API_KEY: "sk-test", CHAT_MODEL: "long" };
    const { service, write, answers, tab } = await open(env);
    const client = await connectLocal(service.url);
    onTestFinished(() => client.close());
    await write("Write a lot");
    await eventually(() => service.lines.some((line) => line.includes('"turn ended"'))).toBe(true);
    const parts = () => client.messages().filter(isBot);
    const shownLines = () => parts().flatMap(({ text }) => toLines(text));
    const written = toLines(source);
    // The turn ends before its last messages have reached all pages.
    await eventually(() => squeeze(shownLines())).toBe(squeeze(written));
    await eventually(() => parts().every(isFinal)).toBe(true);
    expect(parts().length).toBeGreaterThan(4);
    const shown = shownLines();
    expect(shown.filter(isInBlock)).toEqual(written.filter(isInBlock));
    await eventually(() => answers().count()).toBe(parts().length);
    await eventually(() => tab.locator("message-body pre").count()).toBeGreaterThanOrEqual(SECTIONS);
    await eventually(() => tab.locator("message-body table").count()).toBeGreaterThanOrEqual(SECTIONS);
    await eventually(() => tab.locator("message-body >> text=/32番目/").count()).toBe(1);
  });
});

const SECTIONS = 32;

/** Streams a text in deltas of different sizes, as fast as the client accepts them. */
async function writeInPieces(response: ServerResponse, text: string): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (delta: object, finish: string | null = null) =>
    response.write(
      `data: ${JSON.stringify({ id: "1", model: "long", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
    );
  send({ role: "assistant", content: "" });
  for (let at = 0, n = 0; at < text.length; n++) {
    const size = 1 + ((n * 7) % 23);
    send({ content: text.slice(at, at + size) });
    at += size;
    if (n % 50 === 0) await setImmediate();
  }
  send({}, "stop");
  response.end("data: [DONE]\n\n");
}

/** Different sections of prose, code, tables and Japanese. */
function makeLongText(): string {
  const section = (n: number) =>
    [
      `## Section ${n}`,
      `Word${n} by word the ${n}th paragraph grows, *slowly*, with \`code ${n}\`. `.repeat(7),
      `\`\`\`python\ndef f${n}(x):\n    # ${"comment ".repeat(10)}${n}\n    return x * ${n}\n\`\`\``,
      `| n | square |\n|---|---:|\n| ${n} | ${n * n} |\n| ${n + 1} | ${(n + 1) ** 2} |`,
      `これは${n}番目の段落です。${"日本語の文章も壊れません。絵文字👩‍👩‍👧‍👦も。".repeat(3)}`,
    ].join("\n\n");
  return Array.from({ length: SECTIONS }, (_, n) => section(n + 1)).join("\n\n");
}

/** The visible text. A paragraph can continue in the next message after a complete sentence. */
function squeeze(lines: readonly string[]): string {
  return lines.join("").replaceAll(" ", "");
}

/** Headings, rows and code are not split. */
function isInBlock(line: string): boolean {
  return /^(?:## |\| |def | {4})/.test(line);
}

/** The lines of a text that a split neither adds nor repeats. Leaves out fences, table headers and blank lines. */
function toLines(text: string): string[] {
  const lines = text.split("\n").map((line) => line.trimEnd());
  return lines.filter((line) => line !== "" && !line.startsWith("```") && !/^\|(---| n )/.test(line));
}
