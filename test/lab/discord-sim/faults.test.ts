import { request } from "node:http";
import { describe, expect, test } from "vitest";
import { createClock } from "../../../lab/discord-sim/clock.ts";
import { shown } from "../../../lab/discord-sim/world.ts";
import { startGuild } from "../../support/discord.ts";

const POST = "POST /channels/:channel/messages";

async function startChannel() {
  const { discord, channel, call } = await startGuild({ clock: createClock() });
  const post = (content: string) => call("POST", `/channels/${channel.id}/messages`, { content });
  return { discord, channel, post };
}

test("the simulator does not fail if a caller disconnects in the middle of a call", async () => {
  const { discord, channel } = await startChannel();
  const url = new URL(`${discord.apiUrl}/v10/channels/${channel.id}/messages`);
  const headers = { authorization: `Bot ${discord.token}`, "content-type": "application/json", "content-length": 99 };
  const call = request(url, { method: "POST", headers }).on("error", () => {});
  call.write("{");
  await discord.until(() => discord.requests.length === 1);
  call.destroy();
  await discord.until(() => discord.requests[0]?.endedAtMs);
  expect(discord.requests[0]?.status).toBeUndefined();
  expect(discord.violations).toEqual([]);
});

describe("an injected failure", () => {
  test("an injected failure skips the requested number of calls of its route, then hits the requested number", async () => {
    const { discord, channel, post } = await startChannel();
    discord.faults.failNext(POST, { status: 503, skip: 1, times: 2 });
    const answers = [await post("a"), await post("b"), await post("c"), await post("d")];
    expect(answers.map(({ status }) => status)).toEqual([200, 503, 503, 200]);
    expect(discord.messages(channel).map((message) => shown(message).content)).toEqual(["a", "d"]);
    expect(discord.requests.map(({ isInjected }) => isInjected)).toEqual([false, true, true, false]);
  });

  test("an injected failure can lose the response to an executed call", async () => {
    const { discord, channel, post } = await startChannel();
    discord.faults.failNext(POST, { status: "reset", when: "after" });
    await expect(post("a")).rejects.toThrow();
    expect(discord.messages(channel)).toHaveLength(1);
  });

  test("an injected failure can have one of Discord's codes, and is not a violation", async () => {
    const { discord, post } = await startChannel();
    discord.faults.failNext(POST, { status: 403, code: 50013, message: "Missing Permissions" });
    expect((await post("a")).body).toEqual({ code: 50013, message: "Missing Permissions" });
    expect(discord.violations).toEqual([]);
  });

  test("an injected silence ends at the latest when the simulator closes", async () => {
    const { discord, post } = await startChannel();
    discord.faults.failNext(POST, { status: "silence" });
    const unanswered = post("a").catch((error: unknown) => error);
    await discord.until(() => discord.requests.length === 1);
    expect((await post("b")).status).toBe(200);
    expect(discord.requests[0]?.endedAtMs).toBeUndefined();
    await discord.close();
    expect(await unanswered).toBeInstanceOf(Error);
  });

  test("the simulator refuses an injected failure for an unknown route", async () => {
    const { discord } = await startChannel();
    expect(() => discord.faults.failNext("POST /channels/:id/messages", { status: 500 })).toThrow("No route");
  });

  test("an injected delay lasts until it is cleared", async () => {
    const { discord, post } = await startChannel();
    discord.faults.slow(POST, 3_600_000);
    discord.faults.clear();
    expect((await post("a")).status).toBe(200);
    discord.faults.slow("*", 30, { times: 1 });
    const before = discord.clock.now();
    await post("b");
    expect(discord.clock.now() - before).toBeGreaterThanOrEqual(25);
  });
});

describe("a round trip", () => {
  test("a round trip takes the configured time, and the call is in flight for that long", async () => {
    const { discord, channel, call } = await startGuild({ latencyMs: 40, allow: { "overlapping-edits": 1 } });
    const before = performance.now();
    const { body } = await call("POST", `/channels/${channel.id}/messages`, { content: "a" });
    expect(performance.now() - before).toBeGreaterThanOrEqual(35);
    const edit = (content: string) =>
      call("PATCH", `/channels/${channel.id}/messages/${String(body["id"])}`, { content });
    await Promise.all([edit("ab"), edit("abc")]);
    expect(discord.violations).toHaveLength(1);
  });
});

describe("a call that the simulator does not support", () => {
  test("a call that the simulator does not support is a violation, so no test passes because of it", async () => {
    const { discord, call } = await startGuild({ allow: { "unknown-route": 1 } });
    expect((await call("GET", "/voice/regions")).status).toBe(404);
    expect(discord.violations[0]?.sentence).toBe("GET /voice/regions is not part of the simulator.");
  });
});
