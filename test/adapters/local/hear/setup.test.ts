import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { SetupOffer } from "../../../../adapters/local/page/wire.ts";
import { makeDataDir } from "../../../../lab/support/service.ts";
import { createSetup } from "../../../../src/setup/setup.ts";
import { modules } from "../../../support/config.ts";
import { type LocalPageOptions, startLocalPage } from "../../../support/local-page.ts";

const NOTHING = { steps: [], target: null, isLocked: false };
const GATEWAY = { GATEWAY_BASE_URL: "https://gateway.example", GATEWAY_API_KEY: "old-key", CHAT_MODEL: "m" };
/** Headers from a user on another machine who has entered the page's password. */
const ELSEWHERE = { "x-forwarded-for": "203.0.113.7", authorization: `Basic ${btoa("me:a-long-password")}` };
const PATHS = ["steps", "check", "models", "env", "save"];
const VALUES = { DISCORD_TOKEN: `${"M".repeat(24)}.abcdef.${"x".repeat(30)}` };

async function open(options: LocalPageOptions = {}, env: Record<string, string> = {}) {
  const { path: folder, remove } = await makeDataDir();
  const page = await startLocalPage({ setup: createSetup({ env, folder, modules }), ...options });
  onTestFinished(async () => {
    await page.close();
    await remove();
  });
  const offered = async (headers: Record<string, string> = {}) =>
    (await (await fetch(`${page.url}/local/setup`, { headers })).json()) as SetupOffer;
  return { ...page, offered, file: join(folder, ".env") };
}

describe("the first-run setup", () => {
  test("the setup is open to a person on this machine, and writes their values", async () => {
    const { offered, post, file } = await open();
    expect((await offered()).steps.map(({ title }) => title)).toEqual([
      "Connect Slack",
      "Connect Discord",
      "Connect a model",
    ]);
    expect(await (await post("/local/setup/save", { values: VALUES })).json()).toEqual({ problems: [] });
    expect(existsSync(file)).toBe(true);
  });

  test.each(["x-forwarded-for", "forwarded", "via", "true-client-ip", "x-client-ip", "x-forwarded"])(
    "the setup refuses requests through a proxy (%s)",
    async (name) => {
      const { offered, post, file } = await open();
      expect(await offered({ [name]: "for=203.0.113.7" })).toEqual(NOTHING);
      for (const path of PATHS) {
        const body = { stepId: "discord", values: VALUES };
        expect((await post(`/local/setup/${path}`, body, { [name]: "for=203.0.113.7" })).status).toBe(403);
      }
      expect(existsSync(file)).toBe(false);
    },
  );

  test("the setup accepts a proxy's requests only with the page's password", async () => {
    const { offered, post, url, file } = await open({ password: "a-long-password" });
    const authorization = `Basic ${Buffer.from("me:a-long-password").toString("base64")}`;
    expect((await fetch(`${url}/local/setup`)).status).toBe(401);
    expect((await post("/local/setup/save", { values: VALUES })).status).toBe(401);
    expect(existsSync(file)).toBe(false);
    expect((await offered({ authorization, "x-forwarded-for": "203.0.113.7" })).steps).toHaveLength(3);
  });

  test("the setup refuses the page's password once a gateway is configured, and stays open on this machine", async () => {
    const { offered, post } = await open({ password: "a-long-password" }, GATEWAY);
    expect(await offered(ELSEWHERE)).toEqual(NOTHING);
    for (const path of PATHS) {
      const body = { stepId: "gateway", values: { GATEWAY_BASE_URL: "http://127.0.0.1:1" } };
      expect((await post(`/local/setup/${path}`, body, ELSEWHERE)).status, path).toBe(403);
    }
    expect((await offered({ authorization: ELSEWHERE.authorization })).steps).toHaveLength(3);
  });

  test("the setup refuses the page's password as soon as something is saved, before the next start reads it", async () => {
    // The page's address alone connects no platform.
    const { offered, post } = await open({ password: "a-long-password" }, { PUBLIC_URL: "https://bot.example" });
    expect((await offered(ELSEWHERE)).steps).toHaveLength(3);
    expect(await (await post("/local/setup/save", { values: GATEWAY }, ELSEWHERE)).json()).toEqual({ problems: [] });
    expect(await offered(ELSEWHERE)).toEqual(NOTHING);
    expect((await post("/local/setup/save", { values: GATEWAY }, ELSEWHERE)).status).toBe(403);
  });

  test("ADMIN_PASSWORD opens the setup from elsewhere, with limited guesses", async () => {
    const { offered, post } = await open({ password: "a-long-password", adminPassword: "an-administrator-%" }, GATEWAY);
    const administrator = { ...ELSEWHERE, "X-Admin-Password": encodeURIComponent("an-administrator-%") };
    expect(await offered(ELSEWHERE)).toEqual({ ...NOTHING, isLocked: true });
    expect((await post("/local/setup/steps", { values: {} }, ELSEWHERE)).status).toBe(403);
    expect((await offered(administrator)).steps).toHaveLength(3);
    expect((await post("/local/setup/steps", { values: {} }, administrator)).status).toBe(200);
    const guess = async (given: string) =>
      (await post("/local/setup/steps", { values: {} }, { ...ELSEWHERE, "X-Admin-Password": given })).status;
    const statuses = [];
    for (const given of ["%", "a", "b", "c", "d", "e", "f"]) statuses.push(await guess(given));
    expect(statuses).toEqual([403, 403, 403, 403, 403, 403, 429]);
  });

  test("the setup requires ADMIN_PASSWORD from elsewhere if it is set, even before anything is configured", async () => {
    const { offered } = await open({ password: "a-long-password", adminPassword: "an-administrator" });
    expect(await offered(ELSEWHERE)).toEqual({ ...NOTHING, isLocked: true });
  });

  test("the setup refuses requests from another site's page", async () => {
    const { post, file } = await open();
    for (const origin of ["https://evil.example", "null"]) {
      expect((await post("/local/setup/save", { values: VALUES }, { Origin: origin })).status).toBe(403);
    }
    expect(existsSync(file)).toBe(false);
  });

  test("the setup ends once a platform is connected, and accepts no value of several lines", async () => {
    const { offered, post } = await open();
    const broken = { values: { DISCORD_TOKEN: "a\nROLE=worker" } };
    expect((await post("/local/setup/save", broken)).status).toBe(400);
    expect((await offered()).steps).toHaveLength(3);
    const connected = await startLocalPage();
    onTestFinished(connected.close);
    expect(await (await fetch(`${connected.url}/local/setup`)).json()).toEqual(NOTHING);
    expect((await connected.post("/local/setup/save", { values: VALUES })).status).toBe(403);
  });
});
