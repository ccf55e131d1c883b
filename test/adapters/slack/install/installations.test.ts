import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Keyv } from "keyv";
import { describe, expect, onTestFinished, test } from "vitest";
import { ApiError } from "../../../../adapters/slack/api/error.ts";
import {
  createInstallations,
  createRefresh,
  type Installation,
  type Refresh,
} from "../../../../adapters/slack/install/installations.ts";
import { recordingLog, silent } from "../../../../lab/support/log.ts";
import { createSeal } from "../../../../src/port/seal.ts";

const HOUR_MS = 3_600_000;
const signal = new AbortController().signal;
const INSTALLATION: Installation = {
  teamId: "T1",
  isOrgWide: false,
  botUserId: "U1",
  botId: "B1",
  token: "xoxb-first",
  installedAt: 1_000,
};
const EXPIRING = { ...INSTALLATION, refreshToken: "xoxe-first", expiresAt: 12 * HOUR_MS };

/** Issues tokens as Slack does. Each refresh token works once. */
function createSlack(good = "xoxe-first"): { asked: string[]; refresh: Refresh } {
  const asked: string[] = [];
  let next = good;
  return {
    asked,
    async refresh(refreshToken) {
      asked.push(refreshToken);
      if (refreshToken !== next) {
        throw new ApiError("oauth.v2.access", "refused", { code: "invalid_refresh_token", status: 200 });
      }
      next = `xoxe-${asked.length}`;
      return { token: `xoxb-${asked.length}`, refreshToken: next, expiresInS: 12 * 3_600 };
    },
  };
}

function startInstallations({
  refresh = createSlack().refresh,
  ...options
}: Partial<Parameters<typeof createInstallations>[0]> = {}) {
  const clock = { now: 10_000 };
  const store = options.store ?? new Keyv();
  const key = randomBytes(32);
  const deps = { store, encryptionKey: key, refresh, log: silent, now: () => clock.now, ...options };
  return { installations: createInstallations(deps), another: () => createInstallations(deps), clock, store };
}

describe("a stored installation", () => {
  test("an installation is found by every process with the key, and its token is stored nowhere in the clear", async () => {
    const { installations, another, store } = startInstallations();
    await installations.keep(INSTALLATION);
    const workspace = { teamId: "T1", botUserId: "U1", botId: "B1", token: "xoxb-first" };
    expect(await installations.find("T1", signal)).toEqual(workspace);
    expect(await another().find("T1", signal)).toEqual(workspace);
    expect(await installations.find("T2", signal)).toBeUndefined();
    expect(JSON.stringify(await store.get("T1"))).not.toMatch(/xoxb|first/);
  });

  test("an installation copied over another workspace's is rejected", async () => {
    const { installations, another, store } = startInstallations();
    await installations.keep(INSTALLATION);
    await store.set("T2", await store.get("T1"));
    expect(await another().find("T2", signal)).toBeUndefined();
  });

  test("an installation stored with another key counts as absent, and the log says what to do and contains no secret", async () => {
    const { installations, store } = startInstallations();
    await installations.keep(INSTALLATION);
    const { log, lines } = recordingLog();
    const { installations: other } = startInstallations({ store, log });
    expect(await other.find("T1", signal)).toBeUndefined();
    expect(lines[0]?.["msg"]).toMatch(/ENCRYPTION_KEY.*install the app again/);
    expect(JSON.stringify(lines)).not.toContain("xoxb");
  });

  test("a stored value that is not an installation counts as absent", async () => {
    const { another, store } = startInstallations();
    for (const value of [null, 1, {}, "", "rubbish"]) {
      await store.set("T1", value);
      expect(await another().find("T1", signal)).toBeUndefined();
    }
  });

  test("finding an installation rejects while the store is unavailable", async () => {
    const store = { get: () => Promise.reject(new Error("away")) } as unknown as Keyv;
    const { installations } = startInstallations({ store });
    await expect(installations.find("T1", signal)).rejects.toThrow(/away/);
  });

  test("finding an installation ends when its signal aborts", async () => {
    const store = { get: () => new Promise(() => {}) } as unknown as Keyv;
    const { installations } = startInstallations({ store });
    const waiting = new AbortController();
    const finding = installations.find("T1", waiting.signal);
    waiting.abort(new Error("enough"));
    await expect(finding).rejects.toThrow(/enough/);
  });
});

const ORGANISATION: Installation = {
  ...INSTALLATION,
  teamId: "E1",
  isOrgWide: true,
  enterpriseId: "E1",
  token: "xoxb-all",
};

describe("an installation of a whole organisation", () => {
  test("an organisation's installation serves the workspaces that Slack names, from then on in every process", async () => {
    const { installations, another } = startInstallations();
    await installations.keep(ORGANISATION);
    expect(await installations.find("T1", signal)).toBeUndefined();
    const workspace = { teamId: "T1", enterpriseId: "E1", botUserId: "U1", botId: "B1", token: "xoxb-all" };
    expect(await installations.find("T1", signal, "E1")).toEqual(workspace);
    expect(await another().find("T1", signal)).toEqual(workspace);
    expect(await another().find("T2", signal)).toBeUndefined();
    expect(await another().find("T2", signal, "E2")).toBeUndefined();
  });

  test("an organisation's installation does not replace a workspace's own installation", async () => {
    const { installations } = startInstallations();
    await installations.keep(ORGANISATION);
    await installations.keep({ ...INSTALLATION, enterpriseId: "E1" });
    expect(await installations.find("T1", signal, "E1")).toMatchObject({ token: "xoxb-first", enterpriseId: "E1" });
    expect([await installations.hasNoOwn("T1"), await installations.hasNoOwn("T2")]).toEqual([false, true]);
  });
});

describe("removing an installation", () => {
  test("other processes see a removal within a minute", async () => {
    const { installations, another, clock } = startInstallations();
    await installations.keep(INSTALLATION);
    const other = another();
    await other.find("T1", signal);
    await installations.remove("T1", 2_000);
    clock.now += 60_000;
    expect(await other.find("T1", signal)).toBeUndefined();
  });
});

describe("refreshing a token", () => {
  test("a token is refreshed once, two hours before it expires, and stored", async () => {
    const { asked, refresh } = createSlack();
    const { installations, another, clock } = startInstallations({ refresh });
    await installations.keep(EXPIRING);
    expect(await installations.find("T1", signal)).toMatchObject({ token: "xoxb-first" });
    clock.now = 10 * HOUR_MS + 1;
    const found = await Promise.all([installations.find("T1", signal), installations.find("T1", signal)]);
    expect(found.map((one) => one?.token)).toEqual(["xoxb-1", "xoxb-1"]);
    expect(await another().find("T1", signal)).toMatchObject({ token: "xoxb-1" });
    expect(asked).toEqual(["xoxe-first"]);
    clock.now += 11 * HOUR_MS;
    expect(await installations.find("T1", signal)).toMatchObject({ token: "xoxb-2" });
  });

  test("a token that another process refreshed is used", async () => {
    const { installations, another, clock } = startInstallations();
    await installations.keep(EXPIRING);
    clock.now = 11 * HOUR_MS;
    const found = await Promise.all([installations.find("T1", signal), another().find("T1", signal)]);
    expect(found.map((one) => one?.token)).toEqual(["xoxb-1", "xoxb-1"]);
  });

  test("a token that cannot be refreshed is used until it expires, and then finding it rejects", async () => {
    const { installations, clock } = startInstallations({ refresh: () => Promise.reject(new Error("away")) });
    await installations.keep(EXPIRING);
    clock.now = 11 * HOUR_MS;
    expect(await installations.find("T1", signal)).toMatchObject({ token: "xoxb-first" });
    clock.now = 12 * HOUR_MS;
    await expect(installations.find("T1", signal)).rejects.toThrow(/away/);
  });

  test("a refreshed token survives an outage of the store", async () => {
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

  test("a removed installation is gone, even if its refreshed token was waiting to be stored", async () => {
    const store = new Keyv();
    const { installations, clock } = startInstallations({ store });
    await installations.keep(EXPIRING);
    clock.now = 11 * HOUR_MS;
    store.set = () => Promise.reject(new Error("away"));
    expect(await installations.find("T1", signal)).toMatchObject({ token: "xoxb-1" });
    await installations.remove("T1", clock.now);
    expect(await installations.find("T1", signal)).toBeUndefined();
    await expect(installations.keep(EXPIRING)).rejects.toThrow(/away/);
    expect(await installations.find("T1", signal)).toBeUndefined();
  });

  test("an installation is gone once Slack no longer refreshes its token", async () => {
    const { installations, clock } = startInstallations({ refresh: createSlack("xoxe-other").refresh });
    await installations.keep(EXPIRING);
    clock.now = 13 * HOUR_MS;
    expect(await installations.find("T1", signal)).toBeUndefined();
  });
});

const key = randomBytes(32);
const TEXT = "xoxb-a-token é";

test("only the same key and name unseal a text, which is different each time and unchanged", () => {
  const seal = createSeal(key);
  const sealed = seal.close("T1", TEXT);
  expect(createSeal(key).open("T1", sealed)).toBe(TEXT);
  expect(seal.close("T1", TEXT)).not.toBe(sealed);
  const changed = Buffer.from(sealed, "base64url");
  changed[30] = (changed[30] ?? 0) ^ 1;
  expect(() => createSeal(randomBytes(32)).open("T1", sealed)).toThrow();
  expect(() => seal.open("T2", sealed)).toThrow();
  expect(() => seal.open("T1", changed.toString("base64url"))).toThrow();
  for (const length of [0, 5, 20, sealed.length - 2]) expect(() => seal.open("T1", sealed.slice(0, length))).toThrow();
});

test("sealing rejects a key of another length", () => {
  expect(() => createSeal(randomBytes(16))).toThrow(/16 bytes; 32 are needed/);
});

/** Refreshes a token at a Slack that always sends the same response. */
async function refreshAt(status: number, body: string): Promise<unknown> {
  const server = createServer((_, response) => response.writeHead(status).end(body));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/`;
  return createRefresh(apiUrl, "1.2", "hush")("a token").catch((error: unknown) => error);
}

test.each([
  [200, JSON.stringify({ ok: false, error: "invalid_refresh_token" }), "invalid_refresh_token"],
  [200, JSON.stringify({ ok: false, error: "<script>" }), ""],
  [200, JSON.stringify({ ok: true }), ""],
  [200, "<html>login</html>", ""],
  [500, "", ""],
])("the adapter reports the answer %i %s to a refresh as a failure without secrets", async (status, body, code) => {
  const failure = await refreshAt(status, body);
  expect(failure).toMatchObject({ name: "ApiError", code });
  expect(String(failure)).not.toMatch(/hush|a token|script|html/);
});
