import { randomBytes } from "node:crypto";
import { Keyv } from "keyv";
import { describe, expect, test } from "vitest";
import { SlackApiError } from "../../../../adapters/slack/api/error.ts";
import type { Grant } from "../../../../adapters/slack/install/grants.ts";
import {
  createInstallationStore,
  createInstallations,
  type Installation,
} from "../../../../adapters/slack/install/installations.ts";
import { createSeal } from "../../../../src/port/seal.ts";
import { recordingLog, silent } from "../../../support/log.ts";

const HOUR_MS = 3_600_000;
const signal = new AbortController().signal;
const INSTALLATION: Installation = {
  teamId: "T1",
  botUserId: "U1",
  botId: "B1",
  token: "xoxb-first",
  installedAt: 1_000,
};
const EXPIRING = { ...INSTALLATION, refreshToken: "xoxe-first", expiresAt: 12 * HOUR_MS };

/** Gives tokens out as Slack does: each refresh token once. */
function createSlack(good = "xoxe-first") {
  const asked: string[] = [];
  let next = good;
  return {
    asked,
    async refresh(refreshToken: string): Promise<Grant> {
      asked.push(refreshToken);
      if (refreshToken !== next) {
        throw new SlackApiError("oauth.v2.access", "refused", { code: "invalid_refresh_token", status: 200 });
      }
      next = `xoxe-${asked.length}`;
      return { token: `xoxb-${asked.length}`, refreshToken: next, expiresInS: 12 * 3_600, appId: "A1" };
    },
  };
}

function startInstallations(options: Partial<Parameters<typeof createInstallations>[0]> = {}) {
  const clock = { now: 10_000 };
  const store = options.store ?? new Keyv();
  const key = randomBytes(32);
  const deps = { store, encryptionKey: key, grants: createSlack(), log: silent, now: () => clock.now, ...options };
  return { installations: createInstallations(deps), another: () => createInstallations(deps), clock, store, deps };
}

describe("an installation", () => {
  test("is found by every process that has the key, and its token is nowhere to be read", async () => {
    const { installations, another, store } = startInstallations();
    await installations.keep(INSTALLATION);
    const workspace = { teamId: "T1", botUserId: "U1", botId: "B1", token: "xoxb-first" };
    expect(await installations.find("T1", signal)).toEqual(workspace);
    expect(await another().find("T1", signal)).toEqual(workspace);
    expect(await installations.find("T2", signal)).toBeUndefined();
    expect(JSON.stringify(await store.get("T1"))).not.toMatch(/xoxb|first/);
  });

  test("names the organisation of its workspace, where there is one", async () => {
    const { installations, another } = startInstallations();
    await installations.keep({ ...INSTALLATION, enterpriseId: "E1" });
    expect(await another().find("T1", signal)).toMatchObject({ teamId: "T1", enterpriseId: "E1" });
  });

  test("that was copied over another workspace's is rejected", async () => {
    const { installations, another, store } = startInstallations();
    await installations.keep(INSTALLATION);
    await store.set("T2", await store.get("T1"));
    expect(await another().find("T2", signal)).toBeUndefined();
  });

  test("stored with another key is absent, and the log says what to do without any secret", async () => {
    const { installations, store } = startInstallations();
    await installations.keep(INSTALLATION);
    const { log, lines } = recordingLog();
    const { installations: other } = startInstallations({ store, log });
    expect(await other.find("T1", signal)).toBeUndefined();
    expect(lines[0]?.["msg"]).toMatch(/ENCRYPTION_KEY.*install again/);
    expect(JSON.stringify(lines)).not.toContain("xoxb");
  });

  test("cannot be told while the store is away", async () => {
    const store = { get: () => Promise.reject(new Error("away")) } as unknown as Keyv;
    const { installations } = startInstallations({ store });
    await expect(installations.find("T1", signal)).rejects.toThrow(/away/);
  });

  test("is not waited for longer than somebody wants to wait", async () => {
    const store = { get: () => new Promise(() => {}) } as unknown as Keyv;
    const { installations } = startInstallations({ store });
    const waiting = new AbortController();
    const finding = installations.find("T1", waiting.signal);
    waiting.abort(new Error("enough"));
    await expect(finding).rejects.toThrow(/enough/);
  });
});

describe("the end of an installation", () => {
  test("removes it", async () => {
    const { installations, store } = startInstallations();
    await installations.keep(INSTALLATION);
    expect(await installations.remove("T1", 2_000)).toBe(true);
    expect(await installations.find("T1", signal)).toBeUndefined();
    expect(await store.get("T1")).toBeUndefined();
  });

  test("that Slack tells late does not end the next one", async () => {
    const { installations } = startInstallations();
    await installations.keep({ ...INSTALLATION, token: "xoxb-second", installedAt: 3_000 });
    expect(await installations.remove("T1", 2_000)).toBe(false);
    expect(await installations.find("T1", signal)).toMatchObject({ token: "xoxb-second" });
  });

  test("is seen by other processes within a minute", async () => {
    const { installations, another, clock } = startInstallations();
    await installations.keep(INSTALLATION);
    const other = another();
    await other.find("T1", signal);
    await installations.remove("T1", 2_000);
    clock.now += 60_000;
    expect(await other.find("T1", signal)).toBeUndefined();
  });
});

describe("a token that expires", () => {
  test("is renewed two hours before that, once, and kept", async () => {
    const { installations, another, clock, deps } = startInstallations({ grants: createSlack() });
    await installations.keep(EXPIRING);
    expect(await installations.find("T1", signal)).toMatchObject({ token: "xoxb-first" });
    clock.now = 10 * HOUR_MS + 1;
    const found = await Promise.all([installations.find("T1", signal), installations.find("T1", signal)]);
    expect(found.map((one) => one?.token)).toEqual(["xoxb-1", "xoxb-1"]);
    expect(await another().find("T1", signal)).toMatchObject({ token: "xoxb-1" });
    expect((deps.grants as ReturnType<typeof createSlack>).asked).toEqual(["xoxe-first"]);
    clock.now += 11 * HOUR_MS;
    expect(await installations.find("T1", signal)).toMatchObject({ token: "xoxb-2" });
  });

  test("that another process renewed is taken over from it", async () => {
    const { installations, another, clock } = startInstallations();
    await installations.keep(EXPIRING);
    clock.now = 11 * HOUR_MS;
    const found = await Promise.all([installations.find("T1", signal), another().find("T1", signal)]);
    expect(found.map((one) => one?.token)).toEqual(["xoxb-1", "xoxb-1"]);
  });

  test("is used to its end while it cannot be renewed, then it cannot be told", async () => {
    const grants = { refresh: () => Promise.reject(new Error("away")) };
    const { installations, clock } = startInstallations({ grants });
    await installations.keep(EXPIRING);
    clock.now = 11 * HOUR_MS;
    expect(await installations.find("T1", signal)).toMatchObject({ token: "xoxb-first" });
    clock.now = 12 * HOUR_MS;
    await expect(installations.find("T1", signal)).rejects.toThrow(/away/);
  });

  test("is not lost when the store is away just then", async () => {
    const store = new Keyv();
    const { installations, another, clock } = startInstallations({ store });
    await installations.keep(EXPIRING);
    clock.now = 11 * HOUR_MS;
    const set = store.set.bind(store);
    store.set = () => Promise.reject(new Error("away"));
    expect(await installations.find("T1", signal)).toMatchObject({ token: "xoxb-1" });
    store.set = set;
    clock.now += 60_000;
    expect(await installations.find("T1", signal)).toMatchObject({ token: "xoxb-1" });
    expect(await another().find("T1", signal)).toMatchObject({ token: "xoxb-1" });
  });

  test("that Slack renews no more is no installation", async () => {
    const { installations, clock } = startInstallations({ grants: createSlack("xoxe-other") });
    await installations.keep(EXPIRING);
    clock.now = 13 * HOUR_MS;
    expect(await installations.find("T1", signal)).toBeUndefined();
  });
});

const key = randomBytes(32);
const TEXT = "xoxb-a-token é";

test("a sealed text opens with the same key and name", () => {
  const sealed = createSeal(key).close("T1", TEXT);
  expect(createSeal(key).open("T1", sealed)).toBe(TEXT);
  expect(sealed).not.toContain("xoxb");
});

test("the same text is never sealed the same way twice", () => {
  const seal = createSeal(key);
  expect(seal.close("T1", TEXT)).not.toBe(seal.close("T1", TEXT));
});

test("nothing opens with another key, under another name, changed or cut", () => {
  const seal = createSeal(key);
  const sealed = seal.close("T1", TEXT);
  const changed = Buffer.from(sealed, "base64url");
  changed[30] = (changed[30] ?? 0) ^ 1;
  expect(() => createSeal(randomBytes(32)).open("T1", sealed)).toThrow();
  expect(() => seal.open("T2", sealed)).toThrow();
  expect(() => seal.open("T1", changed.toString("base64url"))).toThrow();
  for (const length of [0, 5, 20, sealed.length - 2]) expect(() => seal.open("T1", sealed.slice(0, length))).toThrow();
});

test("a key of another length is refused", () => {
  expect(() => createSeal(randomBytes(16))).toThrow(/16 bytes; 32 are needed/);
});

const away = () => Promise.reject(new Error("away"));

function startStore() {
  const clock = { now: 0 };
  const store = new Keyv();
  const records = createInstallationStore({ store, encryptionKey: randomBytes(32), log: silent, now: () => clock.now });
  return { clock, store, records };
}

test("an installation that was read is cached for a minute", async () => {
  const { clock, records } = startStore();
  await records.keep(INSTALLATION);
  expect(records.peek("T1")).toEqual(INSTALLATION);
  clock.now = 60_000;
  expect(records.peek("T1")).toBeUndefined();
  expect(await records.read("T1")).toEqual(INSTALLATION);
  expect(records.peek("T1")).toEqual(INSTALLATION);
});

test("an installation that could not be stored rejects, or is kept until it is", async () => {
  const { store, records } = startStore();
  const set = store.set.bind(store);
  store.set = away;
  await expect(records.keep(INSTALLATION)).rejects.toThrow(/away/);
  expect(records.peek("T1")).toBeUndefined();
  await records.keepAnyhow(INSTALLATION);
  expect(await records.read("T1")).toEqual(INSTALLATION);
  expect(await store.get("T1")).toBeUndefined();
  store.set = set;
  await records.read("T1");
  expect(await store.get("T1")).toEqual(expect.any(String));
});

test("a forgotten installation is gone, also when it was waiting to be stored", async () => {
  const { store, records } = startStore();
  store.set = away;
  await records.keepAnyhow(INSTALLATION);
  await records.forget("T1");
  expect([records.peek("T1"), await records.read("T1")]).toEqual([undefined, undefined]);
});

test("a value that is no installation counts as absent", async () => {
  const { store, records } = startStore();
  for (const value of [null, 1, {}, "", "rubbish"]) {
    await store.set("T1", value);
    expect(await records.read("T1")).toBeUndefined();
  }
});
