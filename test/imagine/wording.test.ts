import { describe, expect, test } from "vitest";
import { pictureTurn } from "../../lab/support/picture-turn.ts";
import { toAltText, toCaption, toFileName, toHistoryText, toProgress, toSummary } from "../../src/imagine/wording.ts";
import type { PicturePart, PictureTurn } from "../../src/turn/record.ts";

const limits = { maxLength: 2_000, lengthOf: (text: string) => text.length, maxFileBytes: 1 };
const done: PicturePart = { state: "done", messageId: "test:1", text: "" };
const failed = (reason: string, canRetry = true): PicturePart => ({ state: "failed", reason, canRetry });
const named = (prompt: string, more: Partial<PictureTurn> = {}) => pictureTurn({ prompt, ...more });

describe("the caption of an image", () => {
  test("a caption has the model's text, the prompt, the model and the asker", () => {
    const job = named("a fox", { ratio: "16:9", size: "4K", change: "vary" });
    const { markdown, buttons } = toCaption(job, 2, { text: "**Here", tokens: 1_234 }, limits);
    expect(markdown).toBe("**Here**\n\n`a fox` · variation · 16:9 · 4K · `painter` · 1,234 tokens · for `Ada`");
    expect(buttons.map(({ action, turnId }) => [action, turnId])).toEqual(
      ["again", "vary", "edit", "delete"].map((action) => [action, `${job.id}.2`]),
    );
  });

  test("a caption does not mention zero tokens, and says to which of several images it belongs", () => {
    const captionOf = (parts: PicturePart[]) =>
      toCaption(named("a fox", { parts }), 2, { text: "", tokens: 0 }, limits).markdown;
    expect(captionOf([done])).toBe("`a fox` · `painter` · for `Ada`");
    expect(captionOf([done, done, done])).toBe("`a fox` · 2 of 3 · `painter` · for `Ada`");
  });

  test("a caption leaves out the model's text if it does not fit, and truncates long text", () => {
    const job = named("fox ".repeat(900));
    const caption = toCaption(
      job,
      1,
      { text: "word ".repeat(5_000), tokens: undefined },
      { ...limits, maxLength: 300 },
    );
    expect(caption.markdown.length).toBeLessThan(300);
    expect(toCaption(job, 1, { text: "word ".repeat(5_000), tokens: undefined }, limits).markdown.length).toBeLessThan(
      1_300,
    );
  });

  test("a caption shows people's words as plain text", () => {
    const job = named("a `fox` \u202Eevil\n# heading", { author: { id: "x", name: "`**Eve" } });
    expect(toCaption(job, 1, { text: "", tokens: undefined }, limits).markdown).toBe(
      "`a 'fox' evil # heading` · `painter` · for `'**Eve`",
    );
  });
});

describe("the status of an image turn", () => {
  test("the status counts the finished images", () => {
    expect(toProgress(named("a fox"), "")).toBe("Creating `a fox` …");
    const parts: PicturePart[] = [done, { state: "pending" }, failed("x"), { state: "pending" }];
    expect(toProgress(named("a fox", { parts }), "Wait.")).toBe("Creating `a fox` … 2 of 4 done\n\n_Wait._");
  });

  test("the status disappears when every image is shown or deleted", () => {
    expect(toSummary(named("a fox", { parts: [done, { state: "deleted" }] }))).toEqual({ note: "", buttons: [] });
  });

  test("the status gives a common reason once, and different reasons by image", () => {
    const same = toSummary(named("a fox", { parts: [failed("No."), done, failed("No.")] }));
    expect(same.note).toBe("2 of 3 images for `a fox` are missing.\n\nNo.");
    const different = toSummary(named("a fox", { parts: [failed("No."), done, failed("Never.", false)] }));
    expect(different.note).toContain("- Image 1: No.\n- Image 3: Never.");
    expect(different.buttons.map(({ action }) => action)).toEqual(["retry"]);
  });

  test("the status offers no Retry if a retry cannot help", () => {
    const summary = toSummary(named("a fox", { parts: [failed("Never.", false)] }));
    expect(summary).toEqual({ note: "No image for `a fox`.\n\nNever.", buttons: [] });
  });
});

describe("the file of an image", () => {
  test.each([
    ["A red Fox, at dusk!", "a-red-fox-at-dusk.png"],
    ["夕暮れの灯台", "夕暮れの灯台.png"],
    ["../../etc/passwd", "etc-passwd.png"],
    ["🦊", "picture.png"],
    [`${"x".repeat(59)} y z`, `${"x".repeat(59)}.png`],
  ])("an image file made from %j has the name %j", (prompt, name) => {
    expect(toFileName(named(prompt), 1, "image/png")).toBe(name);
  });

  test("an image file has its number and its type's extension", () => {
    expect(toFileName(named("a fox", { parts: [done, done] }), 2, "image/jpeg")).toBe("a-fox-2.jpg");
  });

  test("an image file has an alternative text", () => {
    expect(toAltText({ prompt: " a\n fox \u0007" })).toBe("a fox");
    expect(toAltText({ prompt: "x".repeat(3_000) })).toHaveLength(1_000);
  });
});

test("the history describes images by their prompt", () => {
  const job = named('a "fox"', { parts: [done, failed("x"), done] });
  expect(toHistoryText(job)).toBe('(2 images were created and shown here for "Ada", from the prompt: "a \\"fox\\"")');
});
