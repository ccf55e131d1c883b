import { randomBytes } from "node:crypto";
import { Keyv } from "keyv";
import { expect, test } from "vitest";
import { createShelf } from "../../../../adapters/slack/install/stored.ts";
import { silent } from "../../../support/log.ts";

const INSTALLATION = { teamId: "T1", botUserId: "U1", botId: "B1", token: "xoxb-first", installedAt: 1_000 };
const away = () => Promise.reject(new Error("away"));

function startShelf() {
  const clock = { now: 0 };
  const store = new Keyv();
  const shelf = createShelf({ store, encryptionKey: randomBytes(32), log: silent, now: () => clock.now });
  return { clock, store, shelf };
}

test("what was read is at hand for a minute", async () => {
  const { clock, shelf } = startShelf();
  await shelf.keep(INSTALLATION);
  expect(shelf.peek("T1")).toEqual(INSTALLATION);
  clock.now = 60_000;
  expect(shelf.peek("T1")).toBeUndefined();
  expect(await shelf.read("T1")).toEqual(INSTALLATION);
  expect(shelf.peek("T1")).toEqual(INSTALLATION);
});

test("what could not be stored is said so, or not let go until it is", async () => {
  const { store, shelf } = startShelf();
  const set = store.set.bind(store);
  store.set = away;
  await expect(shelf.keep(INSTALLATION)).rejects.toThrow(/away/);
  expect(shelf.peek("T1")).toBeUndefined();
  await shelf.keepAnyhow(INSTALLATION);
  expect(await shelf.read("T1")).toEqual(INSTALLATION);
  expect(await store.get("T1")).toBeUndefined();
  store.set = set;
  await shelf.read("T1");
  expect(await store.get("T1")).toEqual(expect.any(String));
});

test("what is forgotten is gone, also when it was waiting to be stored", async () => {
  const { store, shelf } = startShelf();
  store.set = away;
  await shelf.keepAnyhow(INSTALLATION);
  await shelf.forget("T1");
  expect([shelf.peek("T1"), await shelf.read("T1")]).toEqual([undefined, undefined]);
});

test("what is no installation counts as absent", async () => {
  const { store, shelf } = startShelf();
  for (const value of [null, 1, {}, "", "rubbish"]) {
    await store.set("T1", value);
    expect(await shelf.read("T1")).toBeUndefined();
  }
});
