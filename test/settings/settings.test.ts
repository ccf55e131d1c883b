import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createSettings } from "../../src/settings/settings.ts";
import { createStores } from "../../src/store/keyv.ts";
import { recordingLog } from "../support/log.ts";

const HOUR_MS = 3_600_000;
const here = { platform: "test", channelId: "general" };
const there = { platform: "test", channelId: "random" };

function open(severalWorkspaces?: ReadonlySet<string>) {
  const database = new DatabaseSync(":memory:");
  const { log, lines } = recordingLog();
  const stores = createStores({ redisUrl: undefined, database, log });
  const settings = createSettings({
    ...stores,
    ttlMs: HOUR_MS,
    log,
    ...(severalWorkspaces && { severalWorkspaces }),
  });
  const keyv = stores.open("settings");
  const leftMs = async (key: string) => ((await keyv.getRaw(key))?.expires ?? 0) - Date.now();
  return { database, settings, keyv, leftMs, lines };
}

describe("the settings of a channel", () => {
  test("the settings of a channel are its own, and each is set apart from the other", async () => {
    const { settings } = open();
    expect(await settings.setModel(here, "large")).toBe(true);
    expect(await settings.setPersona(here, "a pirate", "ada")).toBe(true);
    expect(await settings.read(here)).toEqual({ model: "large", persona: "a pirate", isKnown: true });
    expect(await settings.read(there)).toEqual({ isKnown: true });
    expect(await settings.read({ ...here, platform: "other" })).toEqual({ isKnown: true });
    await settings.setModel(here, undefined);
    expect(await settings.read(here)).toEqual({ persona: "a pirate", isKnown: true });
  });

  test("the settings of all channels are listed, a server of tools that is switched off among them", async () => {
    const { settings } = open();
    await settings.switchServer(there, "tracker", false);
    await settings.setModel(here, "large");
    expect(await settings.list()).toEqual([
      { ...here, model: "large", listens: false },
      { ...there, serversOff: ["tracker"], listens: false },
    ]);
    await settings.erase(there);
    expect(await settings.list()).toEqual([{ ...here, model: "large", listens: false }]);
  });

  test("the settings of a channel keep its options together, and change them one by one", async () => {
    const { settings, keyv, leftMs } = open();
    expect(await settings.setOptions(here, { temperature: 0.2, maxTokens: 500 })).toBe(true);
    await settings.setOptions(here, { maxTokens: undefined, thinking: "shown" });
    expect(await settings.read(here)).toEqual({ options: { temperature: 0.2, thinking: "shown" }, isKnown: true });
    await keyv.set("options:test:general", { v: 1, options: { temperature: 1 } }, HOUR_MS / 2);
    await settings.read(here);
    expect(await leftMs("options:test:general")).toBeGreaterThan(HOUR_MS * 0.96);
    await settings.setOptions(here, { temperature: undefined });
    expect(await settings.read(here)).toEqual({ isKnown: true });
    await settings.setOptions(here, { format: "json" });
    await settings.setOptions(here, undefined);
    expect(await settings.read(here)).toEqual({ isKnown: true });
  });

  test("the settings of a channel live on while they are used, and are not written at every use", async () => {
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

  test("the settings of a channel that are set while they are used stay as they are set", async () => {
    const { settings, keyv } = open();
    await keyv.set("model:test:general", { v: 1, model: "large" }, HOUR_MS / 2);
    await Promise.all([settings.read(here), settings.setModel(here, "small")]);
    expect(await settings.read(here)).toEqual({ model: "small", isKnown: true });
  });

  test("the settings of a channel end some time after their last use", async () => {
    const { settings, leftMs } = open();
    await settings.setModel(here, "large");
    expect(await leftMs("model:test:general")).toBeLessThanOrEqual(HOUR_MS);
  });

  test.each([[{ v: 2, model: "large" }], [{ model: "large" }], ["large"], [{ v: 1, model: 7 }], [null]])(
    "the settings of a channel that cannot be read count as absent, and are logged once: %j",
    async (value) => {
      const { settings, keyv, lines } = open();
      await keyv.set("model:test:general", value);
      await settings.setPersona(here, "a pirate", "ada");
      for (const _ of [1, 2]) expect(await settings.read(here)).toEqual({ persona: "a pirate", isKnown: true });
      expect(lines).toEqual([expect.objectContaining({ key: "model:test:general" })]);
    },
  );

  test("the settings of a channel are unknown and cannot be changed while the store is out of reach", async () => {
    const { database, settings } = open();
    await settings.setModel(here, "large");
    database.close();
    expect(await settings.read(here)).toEqual({ isKnown: false });
    expect(await settings.setModel(here, "small")).toBe(false);
  });
});

describe("a persona", () => {
  test("a persona is given to the person who wrote it, and is erased with them", async () => {
    const { database, settings } = open();
    await settings.setPersona(here, "a pirate", "ada");
    await settings.setPersona(there, "a nurse", "ben");
    expect(await settings.exportAuthor("test", "ada")).toEqual([{ channelId: "general", persona: "a pirate" }]);
    await settings.forgetAuthor("test", "ada");
    expect(await settings.read(here)).toEqual({ isKnown: true });
    expect(await settings.read(there)).toEqual({ persona: "a nurse", isKnown: true });
    expect(JSON.stringify(database.prepare("SELECT * FROM keyv").all())).not.toMatch(/ada|pirate/);
  });

  test("a persona that replaced another one is no longer the first one's", async () => {
    const { settings } = open();
    await settings.setPersona(here, "a pirate", "ada");
    await settings.setPersona(here, "a nurse", "ben");
    expect(await settings.exportAuthor("test", "ada")).toEqual([]);
    await settings.forgetAuthor("test", "ada");
    expect(await settings.read(here)).toEqual({ persona: "a nurse", isKnown: true });
  });

  test("a persona that cannot be read is erased with the person who wrote it", async () => {
    const { settings, keyv } = open();
    await settings.setPersona(here, "a pirate", "ada");
    await keyv.set("persona:test:general", { text: "a pirate" });
    await settings.forgetAuthor("test", "ada");
    expect(await keyv.get("persona:test:general")).toBeUndefined();
  });
});

describe("channels with one id in two workspaces", () => {
  const inOne = { platform: "test", workspaceId: "T1", channelId: "general" };
  const inTwo = { ...inOne, workspaceId: "T2" };

  test("channels with one id in two workspaces have settings of their own", async () => {
    const { settings } = open();
    await settings.setModel(inOne, "large");
    await settings.setPersona(inOne, "a pirate", "ada");
    await settings.setPersona(inTwo, "a nurse", "ada");
    expect(await settings.read(inOne)).toEqual({ model: "large", persona: "a pirate", isKnown: true });
    expect(await settings.read(inTwo)).toEqual({ persona: "a nurse", isKnown: true });
    expect(await settings.exportAuthor("test", "ada")).toEqual([
      { workspaceId: "T1", channelId: "general", persona: "a pirate" },
      { workspaceId: "T2", channelId: "general", persona: "a nurse" },
    ]);
    await settings.setModel(inTwo, undefined);
    await settings.setPersona(inTwo, undefined, "ada");
    expect(await settings.read(inOne)).toEqual({ model: "large", persona: "a pirate", isKnown: true });
  });

  test("settings stored before workspaces were told apart are used by none of several workspaces", async () => {
    const { settings } = open(new Set(["test"]));
    await settings.setModel(here, "large");
    await settings.setPersona(here, "a pirate", "ada");
    expect(await settings.read(inOne)).toEqual({ isKnown: true });
    await settings.forgetAuthor("test", "ada");
    expect(await settings.exportAuthor("test", "ada")).toEqual([]);
    expect(await settings.read(here)).toEqual({ model: "large", isKnown: true });
  });

  test("settings stored before workspaces were told apart are taken over by the only workspace there is", async () => {
    const { settings, keyv } = open();
    await settings.setModel(here, "large");
    await settings.setPersona(here, "a pirate", "ada");
    expect(await settings.read(inOne)).toEqual({ model: "large", persona: "a pirate", isKnown: true });
    expect(await settings.read(inTwo)).toEqual({ isKnown: true });
    const keys = (await Array.fromAsync(keyv.iterator?.(undefined) ?? [])).map(([key]) => String(key));
    expect(keys.toSorted()).toEqual(["by:test:ada:T1:general", "model:test:T1:general", "persona:test:T1:general"]);
    await settings.setModel(here, "small");
    await settings.setModel(inTwo, undefined);
    expect(await settings.read(inTwo)).toEqual({ isKnown: true });
  });
});
