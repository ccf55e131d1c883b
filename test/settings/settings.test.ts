import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createSettings } from "../../src/settings/settings.ts";
import { createStores } from "../../src/store/keyv.ts";
import { recordingLog } from "../support/log.ts";

const HOUR_MS = 3_600_000;
const here = { platform: "test", channelId: "general" };
const there = { platform: "test", channelId: "random" };

function open() {
  const database = new DatabaseSync(":memory:");
  const { log, lines } = recordingLog();
  const stores = createStores({ redisUrl: undefined, database, log });
  const settings = createSettings({ open: stores.open, ttlMs: HOUR_MS, log });
  const keyv = stores.open("settings");
  const leftMs = async (key: string) => ((await keyv.getRaw(key))?.expires ?? 0) - Date.now();
  return { database, settings, keyv, leftMs, lines };
}

describe("the settings of a channel", () => {
  test("are its own, one apart from the other", async () => {
    const { settings } = open();
    expect(await settings.setModel(here, "large")).toBe(true);
    expect(await settings.setPersona(here, "a pirate", "ada")).toBe(true);
    expect(await settings.read(here)).toEqual({ model: "large", persona: "a pirate", isKnown: true });
    expect(await settings.read(there)).toEqual({ isKnown: true });
    expect(await settings.read({ ...here, platform: "other" })).toEqual({ isKnown: true });
    await settings.setModel(here, undefined);
    expect(await settings.read(here)).toEqual({ persona: "a pirate", isKnown: true });
  });

  test("live on while they are used, and are not written at every use", async () => {
    const { settings, keyv, leftMs } = open();
    await keyv.set("model:test:general", { v: 1, model: "large" }, HOUR_MS / 2);
    await keyv.set("persona:test:general", { v: 1, text: "a pirate", authorId: "ada" }, HOUR_MS * 0.95);
    await settings.read(here);
    for (const key of ["model:test:general", "persona:test:general"]) {
      expect(await leftMs(key)).toBeGreaterThan(HOUR_MS * 0.96);
    }
    await keyv.set("model:test:random", { v: 1, model: "large" }, HOUR_MS * 0.95);
    await settings.read(there);
    expect(await leftMs("model:test:random")).toBeLessThan(HOUR_MS * 0.96);
  });

  test("that are set while they are used stay as they are set", async () => {
    const { settings, keyv } = open();
    await keyv.set("model:test:general", { v: 1, model: "large" }, HOUR_MS / 2);
    await Promise.all([settings.read(here), settings.setModel(here, "small")]);
    expect(await settings.read(here)).toEqual({ model: "small", isKnown: true });
  });

  test("end some time after their last use", async () => {
    const { settings, leftMs } = open();
    await settings.setModel(here, "large");
    expect(await leftMs("model:test:general")).toBeLessThanOrEqual(HOUR_MS);
  });

  test.each([[{ v: 2, model: "large" }], [{ model: "large" }], ["large"], [{ v: 1, model: 7 }], [null]])(
    "that cannot be read count as absent, and are logged once: %j",
    async (value) => {
      const { settings, keyv, lines } = open();
      await keyv.set("model:test:general", value);
      await settings.setPersona(here, "a pirate", "ada");
      for (const _ of [1, 2]) expect(await settings.read(here)).toEqual({ persona: "a pirate", isKnown: true });
      expect(lines).toEqual([expect.objectContaining({ key: "model:test:general" })]);
    },
  );

  test("are none and not known where the store is out of reach, and are not kept then", async () => {
    const { database, settings } = open();
    await settings.setModel(here, "large");
    database.close();
    expect(await settings.read(here)).toEqual({ isKnown: false });
    expect(await settings.setModel(here, "small")).toBe(false);
  });
});

describe("a persona", () => {
  test("is given to the person who wrote it, and is erased with them", async () => {
    const { database, settings } = open();
    await settings.setPersona(here, "a pirate", "ada");
    await settings.setPersona(there, "a nurse", "ben");
    expect(await settings.exportAuthor("test", "ada")).toEqual([{ channelId: "general", persona: "a pirate" }]);
    await settings.forgetAuthor("test", "ada");
    expect(await settings.read(here)).toEqual({ isKnown: true });
    expect(await settings.read(there)).toEqual({ persona: "a nurse", isKnown: true });
    expect(JSON.stringify(database.prepare("SELECT * FROM keyv").all())).not.toMatch(/ada|pirate/);
  });

  test("that replaced another one is no longer the first one's", async () => {
    const { settings } = open();
    await settings.setPersona(here, "a pirate", "ada");
    await settings.setPersona(here, "a nurse", "ben");
    expect(await settings.exportAuthor("test", "ada")).toEqual([]);
    await settings.forgetAuthor("test", "ada");
    expect(await settings.read(here)).toEqual({ persona: "a nurse", isKnown: true });
  });

  test("that cannot be read is erased with the person who wrote it", async () => {
    const { settings, keyv } = open();
    await settings.setPersona(here, "a pirate", "ada");
    await keyv.set("persona:test:general", { text: "a pirate" });
    await settings.forgetAuthor("test", "ada");
    expect(await keyv.get("persona:test:general")).toBeUndefined();
  });
});
