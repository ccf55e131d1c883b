import { createServer } from "node:http";
import { inspect } from "node:util";
import { Routes } from "discord.js";
import { describe, expect, test } from "vitest";
import { createApi } from "../../../../adapters/discord/api/client.ts";
import { ApiError } from "../../../../adapters/discord/api/error.ts";
import { FencedError, NO_RIGHT, withFence, withRight } from "../../../../src/port/right.ts";
import { startDiscord } from "../../../support/discord.ts";
import { listenUntilTestEnds } from "../../../support/listen.ts";
import { signal } from "../stage.ts";

const ME = { method: "GET", route: Routes.user() } as const;

interface Scripted {
  status: number;
  headers?: Record<string, string>;
  body: string;
}

/** A server that sends these responses in turn and repeats the last one. */
async function startScripted(...script: Scripted[]) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { status, headers = {}, body } = script[Math.min(asked.length, script.length - 1)] as Scripted;
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
  });
  const apiUrl = `${await listenUntilTestEnds(server)}/api`;
  const lost: string[] = [];
  let nowMs = 0;
  const api = createApi({ token: "a.b.c", apiUrl, onUnauthorized: () => lost.push("lost"), now: () => nowMs });
  return { api, asked, lost, pass: (ms: number) => void (nowMs += ms) };
}

describe("the Discord client", () => {
  test("the Discord client never retries a failed call, because only the pacer retries", async () => {
    const { api, asked } = await startScripted({ status: 500, body: "{}" });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ name: "ApiError", status: 500 });
    expect(asked).toEqual(["GET /api/v10/users/@me"]);
  });

  test("the Discord client makes no call for work that another process took over", async () => {
    const { api, asked } = await startScripted({ status: 200, body: "{}" });
    const fence = { key: "lane", value: "first", check: () => Promise.reject(new FencedError("taken over")) };
    await expect(withRight(api, withFence(NO_RIGHT, fence)).call(ME, signal)).rejects.toThrow(FencedError);
    expect(asked).toEqual([]);
  });

  test("the Discord client takes a rate limit's wait from the body, to the millisecond, although the header has whole seconds", async () => {
    const { api } = await startScripted({
      status: 429,
      headers: { "retry-after": "2", "x-ratelimit-scope": "user" },
      body: JSON.stringify({ message: "You are being rate limited.", retry_after: 1.234, global: false }),
    });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ status: 429, retryAfterMs: 1_234, scope: "own" });
  });

  test("the Discord client reads no member of a server while another read on that server must wait", async () => {
    const [ada, ben] = ["1", "2"].map((id) => ({ method: "GET", route: Routes.guildMember("9", id) }) as const);
    const refusal = { status: 429, body: JSON.stringify({ retry_after: 0.5, global: false }) };
    const { api, asked } = await startScripted(refusal, { status: 200, body: "{}" });
    await expect(api.call(ada ?? ME, signal)).rejects.toMatchObject({ status: 429 });
    await expect(api.call(ben ?? ME, signal)).rejects.toMatchObject({ status: 429, retryAfterMs: 500 });
    expect(asked).toHaveLength(1);
  });

  test("the Discord client makes no further read until Discord resets an exhausted limit", async () => {
    const headers = { "x-ratelimit-limit": "10", "x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "1.5" };
    const { api, asked, pass } = await startScripted({ status: 200, headers, body: "{}" });
    await api.call(ME, signal);
    await expect(api.call(ME, signal)).rejects.toMatchObject({ status: 429, retryAfterMs: 1_500 });
    pass(1_500);
    await api.call(ME, signal);
    expect(asked).toHaveLength(2);
  });

  test.each([
    ["", { "retry-after": "1", "x-ratelimit-global": "true" }],
    [", even if only the body names the limit", {}],
  ])("the Discord client makes no call while a global rate limit lasts%s", async (_, headers) => {
    const body = JSON.stringify({ retry_after: 0.5, global: true });
    const { api, asked, pass } = await startScripted({ status: 429, headers, body }, { status: 200, body: "{}" });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ scope: "global", retryAfterMs: 500 });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ status: 429, retryAfterMs: 500 });
    expect(asked).toHaveLength(1);
    pass(500);
    await api.call(ME, signal);
  });

  test("the Discord client makes no calls for a minute after a proxy refused one, unless the proxy names another wait", async () => {
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

  test("the Discord client parses a response as JSON whatever its content type", async () => {
    const headers = { "content-type": "text/plain" };
    const { api } = await startScripted(
      { status: 200, headers, body: '{"id":"1"}' },
      { status: 429, headers, body: '{"retry_after":0.25}' },
    );
    expect(await api.call(ME, signal)).toEqual({ data: { id: "1" } });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ retryAfterMs: 250, isForeign: false });
  });

  test("the Discord client reports a refused bot token, but not a refused interaction token", async () => {
    const { api, asked, lost } = await startScripted({
      status: 401,
      body: '{"code":50027,"message":"Invalid Webhook Token"}',
    });
    const route = Routes.webhookMessage("123456789012345678", "token", "@original");
    await expect(api.call({ method: "GET", route, isBot: false }, signal)).rejects.toBeInstanceOf(ApiError);
    expect(lost).toEqual([]);
    await expect(api.call(ME, signal)).rejects.toBeInstanceOf(ApiError);
    expect(lost).toEqual(["lost"]);
    // Each further call would count against the bot's IP address.
    await expect(api.call(ME, signal)).rejects.toMatchObject({ status: 401 });
    expect(asked).toHaveLength(2);
  });

  test("the Discord client does not blame the bot token for a proxy's 401", async () => {
    const html = { status: 401, headers: { "content-type": "text/html" }, body: "<html>Log in to this network</html>" };
    const { api, asked, lost } = await startScripted(html, { status: 200, body: '{"id":"1"}' });
    await expect(api.call(ME, signal)).rejects.toMatchObject({ status: 401, isForeign: true });
    expect(await api.call(ME, signal)).toEqual({ data: { id: "1" } });
    expect(lost).toEqual([]);
    expect(asked).toHaveLength(2);
  });

  test("the Discord client returns no data for a response that is not JSON, and does not fail", async () => {
    const { api } = await startScripted({ status: 200, headers: { "content-type": "text/html" }, body: "<html>" });
    expect(await api.call(ME, signal)).toEqual({ data: undefined });
  });

  test("the Discord client's error has the method, the status, the code and Discord's message only", async () => {
    const { api } = await startScripted({ status: 400, body: '{"code":50035,"message":"Invalid Form Body"}' });
    const call = {
      method: "POST",
      route: Routes.channelMessages("123456789012345678"),
      body: { content: "very private words" },
    } as const;
    const error = (await api.call(call, signal).catch((cause: unknown) => cause)) as ApiError;
    expect(error.message).toBe("Discord answered a POST with 400 (code 50035): Invalid Form Body.");
    expect(inspect(error, { depth: null })).not.toContain("very private words");
  });

  test("the Discord client refuses a call beyond fifty per second before Discord would refuse it", async () => {
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
