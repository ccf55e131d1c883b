import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, test } from "vitest";
import { describeWithBrowser } from "../support/browser.ts";
import { COMPOSER, sitDown } from "../support/desk.ts";
import { eventually } from "../support/eventually.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const commands = [{ name: "persona", description: "Says what I am." }];

describeWithBrowser("the form for a persona on the local page", () => {
  const desk = sitDown();
  const field = (name: string) => desk.tab.locator(`dialog textarea[name=${name}]`);
  const readPersona = async () => ({ persona: "a pirate", prompts: ["Who is on call?", "Sum up today"] });

  test("a bare /persona opens a form with the current values, and its fields come as one command", async () => {
    await desk.visit({ commands, readPersona });
    await desk.write("/persona");
    await eventually(() => field("persona").inputValue()).toBe("a pirate");
    expect(await field("prompts").inputValue()).toBe("Who is on call?\nSum up today");
    expect(await desk.tab.evaluate("document.activeElement.name")).toBe("persona");
    await field("persona").fill("a nurse");
    await field("prompts").fill("");
    await field("prompts").press("Control+Enter");
    const options = { persona: "a nurse", prompts: "" };
    expect(await desk.lastEvent(1)).toMatchObject({ kind: "command", name: "persona", text: "", options });
    await eventually(() => desk.tab.locator("dialog").count()).toBe(0);
    expect(await desk.tab.inputValue(COMPOSER)).toBe("");
    await desk.write("/persona show");
    expect(await desk.lastEvent(2)).toMatchObject({ kind: "command", name: "persona", text: "show" });
  });

  test("the form shows an error under its field, focuses it, and fits a phone in both themes", async () => {
    await desk.visit({ commands, readPersona });
    await desk.tab.setViewportSize({ width: 390, height: 780 });
    await desk.write("/persona");
    await field("prompts").fill("a\nb\nc\nd\ne");
    await desk.tab.click("dialog >> text=Save");
    const problem = desk.tab.locator("dialog .problem");
    await eventually(() => problem.allInnerTexts()).toEqual([
      "I can suggest at most 4 prompts of up to 150 characters each.",
    ]);
    expect(await desk.tab.evaluate("document.activeElement.name")).toBe("prompts");
    expect(await field("prompts").getAttribute("aria-describedby")).toBe(await problem.getAttribute("id"));
    expect(await field("prompts").inputValue()).toBe("a\nb\nc\nd\ne");
    await desk.tab.evaluate(AXE);
    for (const colorScheme of ["light", "dark"] as const) {
      await desk.tab.emulateMedia({ colorScheme });
      expect(await desk.tab.evaluate("axe.run('dialog').then(({ violations }) => violations)")).toEqual([]);
    }
    expect(await desk.tab.evaluate("document.documentElement.scrollWidth")).toBe(390);
    await field("prompts").fill("a");
    await field("persona").fill("a".repeat(1_501));
    await desk.tab.click("dialog >> text=Save");
    await eventually(() => problem.allInnerTexts()).toEqual([
      "A persona can have at most 1500 characters; this one has 1501.",
    ]);
    expect(desk.page.events).toEqual([]);
    await desk.tab.keyboard.press("Escape");
    await eventually(() => desk.tab.locator("dialog").count()).toBe(0);
    expect(await desk.tab.inputValue(COMPOSER)).toBe("/persona");
  });
});
