import { describe, expect, test } from "vitest";
import { readContext, readImagineForm, toImagineForm } from "../../../../adapters/slack/interactions/imagine-form.ts";
import { MENU } from "../interaction-stage.ts";

const PREFILL = { prompt: "", options: {}, models: [] };
const reference = (index: number) => ({
  platform: "slack",
  id: `T012345678:F${index}:${"x".repeat(20)}`,
  name: `picture ${index} ${"é".repeat(300)}.png`,
  sizeBytes: 1_000_000 + index,
});

describe("the context of an imagine form", () => {
  test("comes back as it was", () => {
    const context = {
      channelId: "C1",
      threadTs: "1700000000.000100",
      responseUrl: "https://hooks.slack.com/actions/T/1/x",
      personId: "U1",
      isPrivate: true,
      basis: "job.2",
      references: [{ platform: "slack", id: "F1", name: "cat.png", sizeBytes: 3 }],
    };
    const { private_metadata } = toImagineForm(MENU, context, PREFILL);
    expect(readContext(String(private_metadata))).toEqual(context);
  });

  test("fits into what Slack keeps, however many pictures there are", () => {
    const references = Array.from({ length: 40 }, (_, index) => reference(index));
    const menu = { ...MENU, maxReferences: 40 };
    const { private_metadata } = toImagineForm(menu, { channelId: "C1", personId: "U1", references }, PREFILL);
    expect(String(private_metadata).length).toBeLessThanOrEqual(3_000);
    const kept = readContext(String(private_metadata)).references;
    expect(kept.length).toBeGreaterThanOrEqual(10);
    expect(kept.map(({ id }) => id)).toEqual(references.slice(0, kept.length).map(({ id }) => id));
  });
});

describe("the fields of an imagine form", () => {
  test("leave out files where no more pictures are taken", () => {
    const references = Array.from({ length: 3 }, (_, index) => reference(index));
    expect(JSON.stringify(toImagineForm(MENU, { channelId: "C1", personId: "U1", references }, PREFILL))).not.toContain(
      "file_input",
    );
  });

  test("count the picture that is edited", () => {
    const view = toImagineForm(MENU, { channelId: "C1", personId: "U1", basis: "job.1", references: [] }, PREFILL);
    expect(JSON.stringify(view)).toContain('"max_files":2');
    expect(JSON.stringify(view)).toContain("the picture itself");
  });

  test("hold the longest prompt", () => {
    const view = toImagineForm(
      MENU,
      { channelId: "C1", personId: "U1", references: [] },
      { ...PREFILL, prompt: "x".repeat(9_000) },
    );
    expect(JSON.stringify(view)).toContain(`"initial_value":"${"x".repeat(3_000)}"`);
  });

  test("that were left empty are absent", () => {
    expect(readImagineForm({})).toEqual({ prompt: "", options: {}, files: [] });
  });
});
