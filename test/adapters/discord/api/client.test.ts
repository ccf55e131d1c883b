import { createServer } from "node:http";
import { Routes } from "discord.js";
import { describe, expect, test } from "vitest";
import { type ApiCall, createApi } from "../../../../adapters/discord/api/client.ts";
import { ApiError } from "../../../../adapters/discord/api/error.ts";
import { FencedError, withFence } from "../../../../src/concurrency/fence.ts";
import type { SharedWaits } from "../../../../src/port/pace.ts";
import { startDiscord } from "../../../simulators/discord/index.ts";
import { listenUntilTestEnds } from "../../../support/listen.ts";
import { connectWaits } from "../../../support/waits.ts";
import { signal } from "../stage.ts";

const ME = { method: "GET", route: Routes.user() } as const;

interface Scripted {
  status: number;
  headers?: Record<string, string>;
  body: string;
}

/** A server that gives the same answers in turn, the last one for ever. */
const startScripted = (...script: Scripted[]) => startSharing(undefined, ...script);

async function startSharing(waits: SharedWaits | undefined, ...script: Scripted[]) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { status, headers = {}, body } = script[Math.min(asked.length, script.length - 1)] as Scripted;
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
  });
  const apiUrl = `${await listenUntilTestEnds(server)}/api`;
  const lost: string[] = [];
  let nowMs = 0;
  const api = createApi({ token: "a.b.c", apiUrl, onUnauthorized: () => lost.push("lost"), now: () => nowMs, waits });
  return { api, asked, lost, pass: (ms: number) => void (nowMs += ms) };
}

describe("a call to Discord", () => {
  test("is made once, also after a failure: nothing is repeated behind the pacer's back", async () => {
    const { api, asked } = await startScripted({ status: 500, body: "{}" });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ name: "ApiError", status: 500 });
    expect(asked).toEqual(["GET /api/v10/users/@me"]);
  });

  test("is not made for work that another process has taken over", async () => {
    const { api, asked } = await startScripted({ status: 200, body: "{}" });
    const fence = { key: "lane", value: "first", check: () => Promise.reject(new FencedError("taken over")) };
    await expect(withFence(fence, () => api.call(ME, signal))).rejects.toThrow(FencedError);
    expect(asked).toEqual([]);
  });

  test("tells the wait to the millisecond, where the header has whole seconds", async () => {
    const { api } = await startScripted({
      status: 429,
      headers: { "retry-after": "2", "x-ratelimit-scope": "user" },
      body: JSON.stringify({ message: "You are being rate limited.", retry_after: 1.234, global: false }),
    });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ status: 429, retryAfterMs: 1_234, scope: "own" });
  });

  test("is not made while the whole bot has to wait", async () => {
    const headers = { "retry-after": "1", "x-ratelimit-global": "true" };
    const body = JSON.stringify({ retry_after: 0.5, global: true });
    const { api, asked, pass } = await startScripted({ status: 429, headers, body }, { status: 200, body: "{}" });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ scope: "global" });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ status: 429, retryAfterMs: 500 });
    expect(asked).toHaveLength(1);
    pass(500);
    await api.call(ME, signal);
  });

  test("is not made while the whole bot has to wait, also where the body alone says so", async () => {
    const body = JSON.stringify({ retry_after: 0.5, global: true });
    const { api, asked, pass } = await startScripted({ status: 429, body }, { status: 200, body: "{}" });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ scope: "global", retryAfterMs: 500 });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ status: 429 });
    expect(asked).toHaveLength(1);
    pass(500);
    await api.call(ME, signal);
  });

  test("that a proxy refuses stops all others, for a minute where it names no time", async () => {
    const headers = { "content-type": "text/html" };
    const body = "<html>banned</html>";
    const told = { status: 429, headers: { ...headers, "retry-after": "2" }, body };
    const { api, asked, pass } = await startScripted({ status: 429, headers, body }, told, { status: 200, body: "{}" });
    for (const _ of [1, 2, 3]) await expect(api.call(ME, signal)).rejects.toMatchObject({ status: 429 });
    pass(59_990);
    await expect(api.call(ME, signal)).rejects.toMatchObject({ status: 429 });
    expect(asked).toHaveLength(1);
    pass(10);
    await expect(api.call(ME, signal)).rejects.toMatchObject({ status: 429, retryAfterMs: 2_000 });
    pass(2_000);
    await api.call(ME, signal);
    expect(asked).toHaveLength(3);
  });

  test("waits as any process was told, and the others learn no token from that", async () => {
    const told: string[] = [];
    const [own, others] = connectWaits(2) as [SharedWaits, SharedWaits];
    const tell: SharedWaits["tell"] = (what, forMs) => (told.push(what), own.tell(what, forMs));
    const one = await startSharing({ ...own, tell }, { status: 429, body: '{"retry_after":0.5}' });
    const other = await startSharing(others, { status: 200, body: "{}" });
    const token = Routes.webhookMessage("123456789012345678", "SECRET", "@original");
    const calls: ApiCall[] = [
      { method: "DELETE", route: Routes.channelMessageOwnReaction("1", "2", "x") },
      { method: "PATCH", route: token, isBot: false },
    ];
    for (const call of calls) {
      for (const { api } of [one, other])
        await expect(api.call(call, signal)).rejects.toMatchObject({ status: 429, retryAfterMs: 500 });
    }
    expect(other.asked).toEqual([]);
    expect(told).toHaveLength(2);
    expect(told.join()).not.toContain("SECRET");
    other.pass(500);
    for (const call of calls) await other.api.call(call, signal);
  });

  test("has its answer parsed as JSON under any content type", async () => {
    const headers = { "content-type": "text/plain" };
    const { api } = await startScripted(
      { status: 200, headers, body: '{"id":"1"}' },
      { status: 429, headers, body: '{"retry_after":0.25}' },
    );
    expect(await api.call(ME, signal)).toEqual({ data: { id: "1" } });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ retryAfterMs: 250, isForeign: false });
  });

  test("with a token that is not known says so, but not for an interaction's own token", async () => {
    const { api, asked, lost } = await startScripted({
      status: 401,
      body: '{"code":50027,"message":"Invalid Webhook Token"}',
    });
    const route = Routes.webhookMessage("123456789012345678", "token", "@original");
    await expect(api.call({ method: "GET", route, isBot: false }, signal)).rejects.toBeInstanceOf(ApiError);
    expect(lost).toEqual([]);
    await expect(api.call(ME, signal)).rejects.toBeInstanceOf(ApiError);
    expect(lost).toEqual(["lost"]);
    // Each further one would count against the address of the bot.
    await expect(api.call(ME, signal)).rejects.toMatchObject({ status: 401 });
    expect(asked).toHaveLength(2);
  });

  test("that a proxy answers with 401 does not count against the token", async () => {
    const html = { status: 401, headers: { "content-type": "text/html" }, body: "<html>Log in to this network</html>" };
    const { api, asked, lost } = await startScripted(html, { status: 200, body: '{"id":"1"}' });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ status: 401, isForeign: true });
    expect(await api.call(ME, signal)).toEqual({ data: { id: "1" } });
    expect(lost).toEqual([]);
    expect(asked).toHaveLength(2);
  });

  test("answered with something else than JSON has no data, and does not fail for it", async () => {
    const { api } = await startScripted({ status: 200, headers: { "content-type": "text/html" }, body: "<html>" });
    expect(await api.call(ME, signal)).toEqual({ data: undefined });
  });

  test("reports a refusal with method, status, code and Discord's words alone", async () => {
    const { api } = await startScripted({ status: 400, body: '{"code":50035,"message":"Invalid Form Body"}' });
    const call = {
      method: "POST",
      route: Routes.channelMessages("123456789012345678"),
      body: { content: "private" },
    } as const;
    await expect(api.call(call, signal)).rejects.toThrow(
      /^Discord answered a POST with 400 \(code 50035\): Invalid Form Body\.$/,
    );
  });

  test("beyond fifty in a second is refused here, before Discord does", async () => {
    const discord = await startDiscord({ limits: { other: { kind: "fixed", limit: 1_000, windowMs: 1_000 } } });
    const api = createApi({ token: discord.token, apiUrl: discord.apiUrl, onUnauthorized: () => {}, now: Date.now });
    const calls = Array.from({ length: 80 }, () =>
      api.call(ME, signal).then(
        () => 200,
        (error: ApiError) => error.status,
      ),
    );
    expect(new Set(await Promise.all(calls)).size).toBeLessThanOrEqual(2);
    expect(discord.requests.filter(({ status }) => status === 429)).toEqual([]);
  });
});
