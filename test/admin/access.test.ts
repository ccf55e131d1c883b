import { request } from "node:http";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { comeIn, PASSWORD, tryPassword } from "../../lab/support/administrator.ts";
import { startReplica } from "../support/dashboard.ts";

/** Sends a custom `Host` header, which fetch does not allow. */
function statusAt(url: string, path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url + path, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on("error", reject)
      .end();
  });
}

describe("access to the dashboard", () => {
  test.each(["live", "trends/hour", "failures", "turns", "turns/x/trace", "doctor", "settings"])(
    "the dashboard's address %s answers no one without a session",
    async (path) => {
      const { url } = await startReplica();
      expect((await fetch(`${url}/admin/api/${path}`)).status).toBe(401);
    },
  );

  test("the password opens a session that scripts and other sites cannot use", async () => {
    const { url } = await startReplica();
    const entered = await tryPassword(url, PASSWORD);
    expect(entered.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^palaver-admin=[\w-]{43}; Max-Age=43200; Path=\/admin; HttpOnly; SameSite=Strict$/),
    ]);
    const { ask } = await comeIn(url);
    expect((await ask("settings")).status).toBe(200);
  });

  test("wrong passwords let no one in, and a client that tries several must wait", async () => {
    const { url } = await startReplica();
    const statuses = [];
    for (let n = 0; n < 8; n++) statuses.push((await tryPassword(url, `wrong password ${n}`)).status);
    expect(statuses.slice(0, 6)).toEqual([401, 401, 401, 401, 401, 401]);
    expect(statuses.at(-1)).toBe(429);
    expect((await tryPassword(url, PASSWORD)).status).toBe(429);
  });

  test("a session ends when its user signs out", async () => {
    const { url } = await startReplica();
    const admin = await comeIn(url);
    expect((await admin.ask("session", { method: "DELETE" })).status).toBe(200);
    expect((await admin.ask("settings")).status).toBe(401);
  });

  test("a session ends when a process starts with another password", async () => {
    const database = new DatabaseSync(":memory:");
    const before = await startReplica({ database });
    const admin = await comeIn(before.url);
    const after = await startReplica({ database, admin: { password: "another password" } });
    expect((await (await comeIn(after.url, admin)).ask("settings")).status).toBe(401);
  });

  test("the dashboard refuses a change without the page's token, and a change from another site", async () => {
    const { url } = await startReplica();
    const { ask } = await comeIn(url);
    const post = { method: "POST" };
    expect((await ask("doctor", { ...post, headers: { "x-csrf-token": "x".repeat(43) } })).status).toBe(403);
    expect((await ask("doctor", { ...post, headers: { Origin: "https://evil.example" } })).status).toBe(403);
    expect((await ask("doctor", post)).status).toBe(200);
  });

  test("the dashboard refuses a foreign host name, as DNS rebinding would use it", async () => {
    const { url } = await startReplica({ admin: { allowedHosts: ["bot.example"] } });
    expect(await statusAt(url, "/admin", { Host: "evil.example" })).toBe(403);
    expect(await statusAt(url, "/admin", { Host: "bot.example" })).toBe(200);
  });

  test("a trusted proxy lets in the person that its header names, and the dashboard ignores that header from anyone else", async () => {
    const proxy = (networks: string[]) => ({
      password: undefined,
      proxy: { networks, userHeader: "x-forwarded-user" },
    });
    const trusting = await startReplica({ admin: proxy(["127.0.0.0/8"]) });
    const wary = await startReplica({ admin: proxy(["10.0.0.0/8"]) });
    const named = { headers: { "x-forwarded-user": "grace", "x-forwarded-for": "10.0.0.1" } };
    expect(await (await fetch(`${trusting.url}/admin/api/session`, named)).json()).toMatchObject({ name: "grace" });
    expect((await fetch(`${trusting.url}/admin/api/settings`, named)).status).toBe(200);
    expect((await fetch(`${trusting.url}/admin/api/settings`)).status).toBe(401);
    expect((await fetch(`${wary.url}/admin/api/settings`, named)).status).toBe(401);
    expect((await tryPassword(wary.url, "")).status).toBe(404);
  });
});
