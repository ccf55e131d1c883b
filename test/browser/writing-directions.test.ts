import { expect, test } from "vitest";
import { describeWithBrowser } from "../support/browser.ts";
import { COMPOSER, sitDown } from "../support/desk.ts";
import { eventually } from "../support/eventually.ts";

const signal = new AbortController().signal;
const ANSWER = `مرحبا بالعالم، مع English words

English beside it

- قائمة أولى
- English in it

> اقتباس

| اسم | عدد |
|---|---|
| واحد | 1 |

\`\`\`python
print("مرحبا")
\`\`\``;

describeWithBrowser("text of the local page in its own direction", () => {
  const desk = sitDown();
  const directions = (selector: string) =>
    desk.tab
      .locator(`.message.bot ${selector}`)
      .evaluateAll((found) => found.map((each) => getComputedStyle(each).direction));

  test("Arabic text starts at the right, with lists and tables; English and code start at the left", async () => {
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    await sink.post({ markdown: ANSWER, buttons: [], streaming: false }, "n", signal);
    await desk.tab.waitForSelector(".message.bot message-body .code");
    expect(await directions(".block > p")).toEqual(["rtl", "ltr"]);
    const alignments = await desk.tab
      .locator(".message.bot :is(li, td)")
      .evaluateAll((found) => found.map((each) => getComputedStyle(each).textAlign));
    expect(new Set(alignments)).toEqual(new Set(["right"]));
    for (const part of ["ul", "blockquote", "table"]) expect(await directions(part)).toEqual(["rtl"]);
    expect(await directions("pre code")).toEqual(["ltr"]);
    const [first, second] = await desk.tab.locator(".message.bot td").all();
    const [name, count] = await Promise.all([first?.boundingBox(), second?.boundingBox()]);
    expect(name?.x).toBeGreaterThan(count?.x ?? Infinity);
    expect(await desk.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  });

  test("the writing direction is the same in the composer and in the list of chats", async () => {
    await desk.tab.fill(COMPOSER, "كيف حالك");
    const direction = (selector: string) =>
      desk.tab
        .locator(selector)
        .first()
        .evaluate((found) => getComputedStyle(found).direction);
    expect(await direction(COMPOSER)).toBe("rtl");
    await desk.tab.press(COMPOSER, "Enter");
    await eventually(() => desk.tab.locator(".lists a[aria-current] span").count()).toBe(1);
    expect(await direction(".lists a[aria-current] span")).toBe("rtl");
    await desk.tab.fill(COMPOSER, "how are you");
    expect(await direction(COMPOSER)).toBe("ltr");
  });

  test("a short inline code stays in one piece, and a long one can wrap", async () => {
    await desk.tab.setViewportSize({ width: 360, height: 700 });
    await desk.write("hello");
    const { sink } = await desk.takeUp();
    const options = Array.from({ length: 40 }, (_, index) => `${"x".repeat(index % 9)} \`--model\` `).join("");
    await sink.post(
      { markdown: `${options}\n\n\`${"a-long-".repeat(30)}\``, buttons: [], streaming: false },
      "n",
      signal,
    );
    await desk.tab.waitForSelector(".message.bot message-body code");
    const lines = await desk.tab
      .locator(".message.bot message-body code")
      .evaluateAll((found) => found.map((each) => each.getClientRects().length));
    expect(new Set(lines.slice(0, 40))).toEqual(new Set([1]));
    expect(lines.at(-1)).toBeGreaterThan(1);
    expect(await desk.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  });
});
