import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { type Channel, createSettingKeys } from "../../src/settings/keys.ts";
import { SETTING_NAMES } from "../../src/settings/list.ts";
import { createStores } from "../../src/store/keyv.ts";

const HOUR_MS = 3_600_000;
const odd: Channel = { platform: "a:b", channelId: "🧪 c:d" };
const persona = "a pirate";

function open() {
  const stores = createStores({ redisUrl: undefined, database: new DatabaseSync(":memory:"), log: silent }, NO_RIGHT);
  const clock = { now: 1_000 };
  const keys = createSettingKeys({ open: stores.open, ttlMs: HOUR_MS, now: () => clock.now, log: silent });
  return { stores, keys, clock, read: (channel: Channel) => keys.read(channel, SETTING_NAMES) };
}

describe("the keys of the settings", () => {
  test("the keys of the settings hold any id of a platform, and keep ids apart", async () => {
    const { keys, read } = open();
    await keys.write(odd, "model", "large");
    await keys.write(odd, "persona", persona, "e:f");
    expect(await read(odd)).toEqual({ model: "large", persona, isAging: false });
    expect(await read({ platform: "a", channelId: `b:${odd.channelId}` })).toEqual({ isAging: false });
    expect(await keys.ownedBy("a:b", "e:f")).toEqual([{ ...odd, persona }]);
    expect(await keys.ownedBy("a:b", "e")).toEqual([]);
  });

  test("the keys of the settings report values that were written long ago", async () => {
    const { keys, clock, read } = open();
    await keys.write(odd, "persona", persona, "e:f");
    clock.now += HOUR_MS * 0.2;
    await keys.write(odd, "model", "large");
    expect((await read(odd)).isAging).toBe(true);
    await keys.refresh(odd, SETTING_NAMES);
    expect((await read(odd)).isAging).toBe(false);
  });

  test("refreshing the keys of the settings restores nothing that someone erases meanwhile", async () => {
    const { stores, keys, read } = open();
    await keys.write(odd, "persona", persona, "e:f");
    const refreshing = keys.refresh(odd, SETTING_NAMES);
    await stores.eraseOwner({ platform: "a:b", id: "e:f" });
    await refreshing;
    expect(await read(odd)).toEqual({ isAging: false });
  });

  test("the bot erases each key of the settings separately", async () => {
    const { keys, read } = open();
    await keys.write(odd, "model", "large");
    await keys.write(odd, "persona", persona, "e:f");
    await keys.erase(odd, ["model"]);
    expect(await read(odd)).toEqual({ persona, isAging: false });
  });
});
