import { describe, expect, test } from "vitest";
import { createImagineMenu } from "../../src/imagine/module.ts";
import { ben, command } from "../support/events.ts";
import { pictureJob } from "../support/picture-job.ts";

const { signal } = new AbortController();
const by = command("imagine");
const done = { state: "done", messageId: "test:1", text: "" } as const;

function start(job = pictureJob()) {
  const find = async (id: string) => (id === job.id ? job : undefined);
  return createImagineMenu({ running: { find }, listModels: async () => ["painter"], maxReferences: 8 });
}

describe("the menu", () => {
  test("offers what the interface takes", async () => {
    const menu = start();
    expect(menu.ratios.slice(0, 5)).toEqual(["1:1", "16:9", "9:16", "4:3", "3:4"]);
    expect([menu.sizes, menu.maxCount, menu.maxReferences]).toEqual([["1K", "2K", "4K"], 4, 8]);
    expect(await menu.listModels(signal)).toEqual(["painter"]);
  });

  test("describes a picture that is there, by what it was asked for with", async () => {
    const menu = start(pictureJob({ parts: [done, { state: "deleted" }, { state: "pending" }], size: "2K" }));
    expect(await menu.describe("job.1", by, signal)).toEqual({
      prompt: "a fox",
      options: { size: "2K", model: "painter", basis: "job.1" },
    });
    // Shown a moment ago: its record may not know yet.
    expect(await menu.describe("job.3", by, signal)).toMatchObject({ prompt: "a fox" });
    for (const id of ["job.2", "job.4", "job.0", "gone.1", "turn"]) {
      expect(await menu.describe(id, by, signal)).toBeUndefined();
    }
  });

  test("describes nothing to those who cannot have the picture before them", async () => {
    const reply = { platform: "test", channelId: "general" };
    const menu = start(pictureJob({ parts: [done], reply }));
    const elsewhere = { author: ben, reply: { platform: "test", channelId: "elsewhere" } };
    expect(await menu.describe("job.1", elsewhere, signal)).toBeUndefined();
    const secret = start(pictureJob({ parts: [done], reply: { ...reply, visibleTo: "ada" } }));
    expect(await secret.describe("job.1", { author: ben, reply }, signal)).toBeUndefined();
    expect(await secret.describe("job.1", by, signal)).toMatchObject({ prompt: "a fox" });
  });
});
