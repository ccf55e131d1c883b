import { describe, expect, test } from "vitest";
import type { PictureJob, PicturePart } from "../../src/imagine/picture-job.ts";
import { toAltText, toCaption, toFileName, toHistoryText, toProgress, toSummary } from "../../src/imagine/wording.ts";
import { pictureJob } from "../support/picture-job.ts";

const limits = { maxLength: 2_000, lengthOf: (text: string) => text.length, maxFileBytes: 1 };
const done: PicturePart = { state: "done", messageId: "test:1", text: "" };
const failed = (reason: string, canRetry = true): PicturePart => ({ state: "failed", reason, canRetry });
const named = (prompt: string, more: Partial<PictureJob> = {}) => pictureJob({ prompt, ...more });

describe("a caption", () => {
  test("says what the model said, and what was asked of whom by whom", () => {
    const job = named("a fox", { ratio: "16:9", size: "4K", change: "vary" });
    const { markdown, buttons } = toCaption(job, 2, { text: "**Here", tokens: 1_234 }, limits);
    expect(markdown).toBe("**Here**\n\n`a fox` · variation · 16:9 · 4K · `painter` · 1,234 tokens · for `Ada`");
    expect(buttons.map(({ action, turnId }) => [action, turnId])).toEqual(
      ["again", "vary", "edit", "delete"].map((action) => [action, `${job.id}.2`]),
    );
  });

  test("says nothing of a cost of no tokens", () => {
    expect(toCaption(named("a fox"), 1, { text: "", tokens: 0 }, limits).markdown).toBe(
      "`a fox` · `painter` · for `Ada`",
    );
  });

  test("says which of several pictures it is under", () => {
    const job = named("a fox", { parts: [done, done, done] });
    expect(toCaption(job, 2, { text: "", tokens: undefined }, limits).markdown).toBe(
      "`a fox` · 2 of 3 · `painter` · for `Ada`",
    );
  });

  test("leaves the model's words out where they do not fit, and cuts what is long", () => {
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

  test("shows people's words as plain text", () => {
    const job = named("a `fox` \u202Eevil\n# heading", { author: { id: "x", name: "`**Eve" } });
    expect(toCaption(job, 1, { text: "", tokens: undefined }, limits).markdown).toBe(
      "`a 'fox' evil # heading` · `painter` · for `'**Eve`",
    );
  });
});

describe("the status", () => {
  test("counts while pictures are drawn", () => {
    expect(toProgress(named("a fox"), "").markdown).toBe("Drawing `a fox` …");
    const parts: PicturePart[] = [done, { state: "pending" }, failed("x"), { state: "pending" }];
    expect(toProgress(named("a fox", { parts }), "Wait.").markdown).toBe("Drawing `a fox` … 2 of 4 done\n\n_Wait._");
  });

  test("has nothing left to say when every picture is there or was taken away", () => {
    expect(toSummary(named("a fox", { parts: [done, { state: "deleted" }] }))).toBeUndefined();
  });

  test("gives one reason once, and different ones by the picture", () => {
    const same = toSummary(named("a fox", { parts: [failed("No."), done, failed("No.")] }));
    expect(same?.markdown).toBe("2 of 3 pictures of `a fox` are missing.\n\nNo.");
    const different = toSummary(named("a fox", { parts: [failed("No."), done, failed("Never.", false)] }));
    expect(different?.markdown).toContain("- Picture 1: No.\n- Picture 3: Never.");
    expect(different?.buttons.map(({ action }) => action)).toEqual(["retry"]);
  });

  test("offers no other attempt where none helps", () => {
    const summary = toSummary(named("a fox", { parts: [failed("Never.", false)] }));
    expect(summary).toEqual({ markdown: "No picture of `a fox`.\n\nNever.", buttons: [], streaming: false });
  });
});

describe("a file", () => {
  test.each([
    ["A red Fox, at dusk!", "a-red-fox-at-dusk.png"],
    ["夕暮れの灯台", "夕暮れの灯台.png"],
    ["../../etc/passwd", "etc-passwd.png"],
    ["🦊", "picture.png"],
    [`${"x".repeat(59)} y z`, `${"x".repeat(59)}.png`],
  ])("made from %j is called %j", (prompt, name) => {
    expect(toFileName(named(prompt), 1, "image/png")).toBe(name);
  });

  test("has its number and the ending of its kind", () => {
    expect(toFileName(named("a fox", { parts: [done, done] }), 2, "image/jpeg")).toBe("a-fox-2.jpg");
  });

  test("says in words what it shows", () => {
    expect(toAltText({ prompt: " a\n fox \u0007" })).toBe("a fox");
    expect(toAltText({ prompt: "x".repeat(3_000) })).toHaveLength(1_000);
  });
});

test("the history says of pictures what they were drawn from", () => {
  const job = named('a "fox"', { parts: [done, failed("x"), done] });
  expect(toHistoryText(job)).toBe('(2 pictures were drawn and shown here for "Ada", from the words: "a \\"fox\\"")');
});
