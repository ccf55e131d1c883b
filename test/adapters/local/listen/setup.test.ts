import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { SetupOffer } from "../../../../adapters/local/page/wire.ts";
import { createSetup } from "../../../../src/setup/setup.ts";
import { type LocalPageOptions, startLocalPage } from "../../../support/local-page.ts";
import { makeDataDir } from "../../../support/service.ts";

const VALUES = { DISCORD_TOKEN: `${"M".repeat(24)}.abcdef.${"x".repeat(30)}` };

async function open(options: LocalPageOptions = {}) {
  const { path: folder, remove } = await makeDataDir();
  const page = await startLocalPage({ setup: createSetup({ env: {}, folder }), ...options });
  onTestFinished(async () => {
    await page.close();
    await remove();
  });
  const offered = async (headers: Record<string, string> = {}) =>
    (await (await fetch(`${page.url}/local/setup`, { headers })).json()) as SetupOffer;
  return { ...page, offered, file: join(folder, ".env") };
}

describe("the routes of the first run", () => {
  test("offer it to a person on this machine, and write what that person says", async () => {
    const { offered, post, file } = await open();
    expect((await offered()).steps.map(({ title }) => title)).toEqual([
      "Connect Slack",
      "Connect Discord",
      "Connect a model",
    ]);
    expect(await (await post("/local/setup/save", { values: VALUES })).json()).toEqual({ problems: [] });
    expect(existsSync(file)).toBe(true);
  });

  test.each(["x-forwarded-for", "forwarded", "via"])("refuse what came through a proxy (%s)", async (name) => {
    const { offered, post, file } = await open();
    expect(await offered({ [name]: "for=203.0.113.7" })).toEqual({ steps: [], target: null });
    for (const path of ["steps", "check", "models", "env", "save"]) {
      const body = { stepId: "discord", values: VALUES };
      expect((await post(`/local/setup/${path}`, body, { [name]: "for=203.0.113.7" })).status).toBe(403);
    }
    expect(existsSync(file)).toBe(false);
  });

  test("take it from a proxy with the page's password, and from nobody without", async () => {
    const { offered, post, url, file } = await open({ password: "a-long-password" });
    const authorization = `Basic ${Buffer.from("me:a-long-password").toString("base64")}`;
    expect((await fetch(`${url}/local/setup`)).status).toBe(401);
    expect((await post("/local/setup/save", { values: VALUES })).status).toBe(401);
    expect(existsSync(file)).toBe(false);
    expect((await offered({ authorization, "x-forwarded-for": "203.0.113.7" })).steps).toHaveLength(3);
  });

  test("refuse what another site's page sends", async () => {
    const { post, file } = await open();
    for (const origin of ["https://evil.example", "null"]) {
      expect((await post("/local/setup/save", { values: VALUES }, { Origin: origin })).status).toBe(403);
    }
    expect(existsSync(file)).toBe(false);
  });

  test("offer nothing once a platform is connected, and take no value of several lines", async () => {
    const { offered, post } = await open();
    const broken = { values: { DISCORD_TOKEN: "a\nROLE=worker" } };
    expect((await post("/local/setup/save", broken)).status).toBe(400);
    expect((await offered()).steps).toHaveLength(3);
    const connected = await startLocalPage();
    onTestFinished(connected.close);
    expect(await (await fetch(`${connected.url}/local/setup`)).json()).toEqual({ steps: [], target: null });
    expect((await connected.post("/local/setup/save", { values: VALUES })).status).toBe(403);
  });
});
