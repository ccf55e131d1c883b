import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { recordingLog } from "../../lab/support/log.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { changeOptions, type OptionChanges } from "../../src/settings/answer-options.ts";
import { createSettings } from "../../src/settings/settings.ts";
import { createStores } from "../../src/store/keyv.ts";

const HOUR_MS = 3_600_000;
const here = { platform: "test", channelId: "general" };
const there = { platform: "test", channelId: "random" };

function open() {
  const database = new DatabaseSync(":memory:");
  const { log, lines } = recordingLog();
  const stores = createStores({ redisUrl: undefined, database, log }, NO_RIGHT);
  const settings = createSettings({ ...stores, ttlMs: HOUR_MS, log });
  const keyv = stores.open("settings");
  const leftMs = (key: string) => {
    const row = database.prepare("SELECT expires_at FROM keyv WHERE key = ?").get(`settings:${key}`);
    return Number(row?.["expires_at"] ?? 0) - stores.now();
  };
  /** Stores a setting as if it had been written `byMs` ago. */
  const age = (key: string, value: object, byMs: number) =>
    keyv.set(key, { ...value, at: stores.now() - byMs }, HOUR_MS - byMs);
  const forget = (id: string) => stores.eraseOwner({ platform: "test", id });
  return { database, settings, keyv, leftMs, age, forget, lines };
}

describe("the settings of a channel", () => {
  test("the settings of a channel are its own, and each is set separately", async () => {
    const { settings } = open();
    expect(await settings.set(here, "model", "large")).toBe(true);
    expect(await settings.set(here, "persona", "a pirate", "ada")).toBe(true);
    expect(await settings.read(here)).toEqual({ model: "large", persona: "a pirate", isKnown: true });
    expect(await settings.read(there)).toEqual({ isKnown: true });
    expect(await settings.read({ ...here, platform: "other" })).toEqual({ isKnown: true });
    await settings.set(here, "model", undefined);
    expect(await settings.read(here)).toEqual({ persona: "a pirate", isKnown: true });
  });

  test("the settings of channels and people with any ids are kept apart", async () => {
    const { settings } = open();
    const odd = { platform: "a:b", channelId: "🧪 c:d" };
    await settings.set(odd, "model", "large");
    await settings.set(odd, "persona", "a pirate", "e:f");
    expect(await settings.read(odd)).toEqual({ model: "large", persona: "a pirate", isKnown: true });
    expect(await settings.read({ platform: "a", channelId: `b:${odd.channelId}` })).toEqual({ isKnown: true });
    expect(await settings.exportAuthor("a:b", "e:f")).toEqual([{ channelId: odd.channelId, persona: "a pirate" }]);
    expect(await settings.exportAuthor("a:b", "e")).toEqual([]);
  });

  test("the list of all channels' settings includes the tool servers that are switched off", async () => {
    const { settings } = open();
    await settings.set(there, "serversOff", ["tracker"]);
    await settings.set(here, "model", "large");
    expect(await settings.list()).toEqual([
      { ...here, model: "large" },
      { ...there, serversOff: ["tracker"] },
    ]);
    await settings.erase(there);
    expect(await settings.list()).toEqual([{ ...here, model: "large" }]);
  });

  test("the settings of a channel store all options together, and one option can change without the others", async () => {
    const { settings, age, leftMs } = open();
    const setOptions = (changes: OptionChanges) =>
      settings.change(here, "options", (before = {}) => changeOptions(before, changes));
    expect(await setOptions({ temperature: 0.2, maxTokens: 500 })).toBe(true);
    await setOptions({ maxTokens: undefined, thinking: "shown" });
    expect(await settings.read(here)).toEqual({ options: { temperature: 0.2, thinking: "shown" }, isKnown: true });
    await age("options:test::general", { value: { temperature: 1 } }, HOUR_MS / 2);
    await settings.read(here);
    expect(leftMs("options:test::general")).toBeGreaterThan(HOUR_MS * 0.96);
    await setOptions({ temperature: undefined });
    expect(await settings.read(here)).toEqual({ isKnown: true });
    await setOptions({ format: "json" });
    await settings.set(here, "options", undefined);
    expect(await settings.read(here)).toEqual({ isKnown: true });
  });

  test("the settings of a channel stay stored while the bot uses them, and are not written at every use", async () => {
    const { settings, age, leftMs } = open();
    await age("model:test::general", { value: "large" }, HOUR_MS / 2);
    await age("persona:test::general", { value: "a pirate", authorId: "ada" }, HOUR_MS * 0.05);
    await settings.read(here);
    for (const key of ["model:test::general", "persona:test::general"]) {
      expect(leftMs(key)).toBeGreaterThan(HOUR_MS * 0.96);
    }
    await age("model:test::random", { value: "large" }, HOUR_MS * 0.05);
    await settings.read(there);
    expect(leftMs("model:test::random")).toBeLessThan(HOUR_MS * 0.96);
  });

  test("the settings of a channel that are set while they are used keep the new value", async () => {
    const { settings, age } = open();
    await age("model:test::general", { value: "large" }, HOUR_MS / 2);
    await Promise.all([settings.read(here), settings.set(here, "model", "small")]);
    expect(await settings.read(here)).toEqual({ model: "small", isKnown: true });
  });

  test("the settings of a channel that the bot refreshes do not come back if someone erases them meanwhile", async () => {
    const { settings, age, forget } = open();
    await settings.set(here, "persona", "a pirate", "ada");
    await age("model:test::general", { value: "large" }, HOUR_MS / 2);
    const reading = settings.read(here);
    await forget("ada");
    await reading;
    expect(await settings.read(here)).toEqual({ model: "large", isKnown: true });
  });

  test("the settings of a channel expire some time after their last use", async () => {
    const { settings, leftMs } = open();
    await settings.set(here, "model", "large");
    expect(leftMs("model:test::general")).toBeLessThanOrEqual(HOUR_MS);
  });

  test.each([["large"], [{ value: 7, at: 0 }], [null]])(
    "the settings of a channel that the bot cannot parse count as absent, and are logged once: %j",
    async (value) => {
      const { settings, keyv, lines } = open();
      await keyv.set("model:test::general", value);
      await settings.set(here, "persona", "a pirate", "ada");
      for (const _ of [1, 2]) expect(await settings.read(here)).toEqual({ persona: "a pirate", isKnown: true });
      expect(lines).toEqual([expect.objectContaining({ key: "model:test::general" })]);
    },
  );

  test("the bot neither knows nor changes a channel's settings while the store is unavailable", async () => {
    const { database, settings } = open();
    await settings.set(here, "model", "large");
    database.close();
    expect(await settings.read(here)).toEqual({ isKnown: false });
    expect(await settings.set(here, "model", "small")).toBe(false);
  });
});

describe("the persona of a channel", () => {
  test("the bot exports a persona to the person who wrote it, and erases it with that person's data", async () => {
    const { database, settings, forget } = open();
    await settings.set(here, "persona", "a pirate", "ada");
    await settings.set(there, "persona", "a nurse", "ben");
    expect(await settings.exportAuthor("test", "ada")).toEqual([{ channelId: "general", persona: "a pirate" }]);
    await forget("ada");
    expect(await settings.read(here)).toEqual({ isKnown: true });
    expect(await settings.read(there)).toEqual({ persona: "a nurse", isKnown: true });
    expect(JSON.stringify(database.prepare("SELECT * FROM keyv").all())).not.toMatch(/\bada\b|pirate/);
  });

  test("a persona that replaced another one belongs to the second author only", async () => {
    const { settings, forget } = open();
    await settings.set(here, "persona", "a pirate", "ada");
    await settings.set(here, "persona", "a nurse", "ben");
    expect(await settings.exportAuthor("test", "ada")).toEqual([]);
    await forget("ada");
    expect(await settings.read(here)).toEqual({ persona: "a nurse", isKnown: true });
  });

  test("the bot also erases a persona that it cannot parse when its author's data is erased", async () => {
    const { settings, keyv, forget } = open();
    await settings.set(here, "persona", "a pirate", "ada");
    const owner = { platform: "test", id: "ada" };
    await keyv.put({ key: "persona:test::general", value: { text: "a pirate" }, ttlMs: HOUR_MS, owner });
    await forget("ada");
    expect(await keyv.get("persona:test::general")).toBeUndefined();
  });
});

describe("channels with one id in two workspaces", () => {
  const inOne = { platform: "test", workspaceId: "T1", channelId: "general" };
  const inTwo = { ...inOne, workspaceId: "T2" };

  test("channels with the same id in two workspaces have separate settings", async () => {
    const { settings } = open();
    await settings.set(inOne, "model", "large");
    await settings.set(inOne, "persona", "a pirate", "ada");
    await settings.set(inTwo, "persona", "a nurse", "ada");
    expect(await settings.read(inOne)).toEqual({ model: "large", persona: "a pirate", isKnown: true });
    expect(await settings.read(inTwo)).toEqual({ persona: "a nurse", isKnown: true });
    expect(await settings.exportAuthor("test", "ada")).toEqual([
      { workspaceId: "T1", channelId: "general", persona: "a pirate" },
      { workspaceId: "T2", channelId: "general", persona: "a nurse" },
    ]);
    await settings.set(inTwo, "model", undefined);
    await settings.set(inTwo, "persona", undefined, "ada");
    expect(await settings.read(inOne)).toEqual({ model: "large", persona: "a pirate", isKnown: true });
  });
});
