import { describe, expect, test } from "vitest";
import { ben, command } from "../../lab/support/events.ts";
import { pictureTurn } from "../../lab/support/picture-turn.ts";
import { createImagineMenu } from "../../src/imagine/menu.ts";

const { signal } = new AbortController();
const by = command("imagine");
const done = { state: "done", messageId: "test:1", text: "" } as const;

function start(turn = pictureTurn()) {
  const find = async (id: string) => (id === turn.id ? turn : undefined);
  return createImagineMenu({ find, listModels: async () => ["painter"], maxReferences: 8 });
}

describe("the menu for images", () => {
  test("the menu offers what the API accepts", async () => {
    const menu = start();
    expect(menu.ratios.slice(0, 5)).toEqual(["1:1", "16:9", "9:16", "4:3", "3:4"]);
    expect([menu.sizes, menu.maxCount, menu.maxReferences]).toEqual([["1K", "2K", "4K"], 4, 8]);
    expect(await menu.listModels(signal)).toEqual(["painter"]);
  });

  test("the menu describes an existing image by its request", async () => {
    const menu = start(pictureTurn({ parts: [done, { state: "deleted" }, { state: "pending" }], size: "2K" }));
    expect(await menu.describe("job.1", by, signal)).toEqual({
      prompt: "a fox",
      options: { size: "2K", model: "painter", basis: "job.1" },
    });
    // The image has only just appeared, so its record may not contain it yet.
    expect(await menu.describe("job.3", by, signal)).toMatchObject({ prompt: "a fox" });
    for (const id of ["job.2", "job.4", "job.0", "gone.1", "turn"]) {
      expect(await menu.describe(id, by, signal)).toBeUndefined();
    }
  });

  test("the menu describes nothing to people who cannot see the image", async () => {
    const reply = { platform: "test", channelId: "general" };
    const menu = start(pictureTurn({ parts: [done], reply }));
    const elsewhere = { author: ben, reply: { platform: "test", channelId: "elsewhere" } };
    expect(await menu.describe("job.1", elsewhere, signal)).toBeUndefined();
    const secret = start(pictureTurn({ parts: [done], reply: { ...reply, visibleTo: "ada" } }));
    expect(await secret.describe("job.1", { author: ben, reply }, signal)).toBeUndefined();
    expect(await secret.describe("job.1", by, signal)).toMatchObject({ prompt: "a fox" });
  });
});
