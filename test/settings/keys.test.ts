import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { type Channel, createSettingKeys, toSettingKeys } from "../../src/settings/keys.ts";
import { createStores } from "../../src/store/keyv.ts";
import { silent } from "../support/log.ts";

const HOUR_MS = 3_600_000;
const odd: Channel = { platform: "a:b", channelId: "🧪 c:d\uD800" };

function open() {
  const stores = createStores({ redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent });
  return { keys: createSettingKeys({ open: stores.open, ttlMs: HOUR_MS, log: silent }), keyv: stores.open("settings") };
}

describe("the keys of the settings", () => {
  test("the keys of the settings hold any id of a platform, and keep ids apart", async () => {
    const { keys } = open();
    await keys.writeModel(odd, "large");
    expect((await keys.read(odd)).model).toBe("large");
    expect((await keys.read({ platform: "a", channelId: `b:${odd.channelId}` })).model).toBeUndefined();
    await keys.writePersona(odd, { text: "a pirate", authorId: "e:f" });
    const owned = await Array.fromAsync(keys.walkOwned("a:b", "e:f"));
    expect(owned).toMatchObject([{ channel: odd }]);
    expect(await Array.fromAsync(keys.walkOwned("a:b", "e"))).toEqual([]);
  });

  test("the keys of the settings say when some of what they hold was last written long ago", async () => {
    const { keys, keyv } = open();
    expect((await keys.read(odd)).isAging).toBe(false);
    await keys.writeModel(odd, "large");
    expect((await keys.read(odd)).isAging).toBe(false);
    await keyv.set(toSettingKeys("persona", odd)[0], { v: 1, text: "a pirate", authorId: "ada" }, HOUR_MS * 0.8);
    expect((await keys.read(odd)).isAging).toBe(true);
  });

  test("the keys of the settings are erased one apart from the other", async () => {
    const { keys } = open();
    await keys.writeModel(odd, "large");
    await keys.writePersona(odd, { text: "a pirate", authorId: "ada" });
    await keys.erase(toSettingKeys("model", odd));
    expect(await keys.read(odd)).toMatchObject({ model: undefined, persona: { text: "a pirate" } });
  });
});
