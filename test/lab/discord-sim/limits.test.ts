import { describe, expect, test } from "vitest";
import { type DiscordOptions, startGuild } from "../../support/discord.ts";

/** A channel with a stopped clock, and a function that posts to the channel. */
async function startChannel(options: DiscordOptions = {}) {
  const { channel, call, ...scene } = await startGuild(options);
  let count = 0;
  const post = (to = channel) => call("POST", `/channels/${to.id}/messages`, { content: `text ${count++}` });
  return { ...scene, channel, call, post };
}

const remaining = ({ headers }: { headers: Headers }) => Number(headers.get("x-ratelimit-remaining"));
const resetAfter = ({ headers }: { headers: Headers }) => Number(headers.get("x-ratelimit-reset-after"));

describe("the simulated rate-limit counters", () => {
  test("a counter allows five calls in five seconds, in a window that starts with the first one", async () => {
    const { discord, post } = await startChannel({ allow: { "rate-limited": 1 } });
    const first = await post();
    expect([remaining(first), resetAfter(first)]).toEqual([4, 5]);
    expect(first.headers.get("x-ratelimit-limit")).toBe("5");
    expect(first.headers.get("x-ratelimit-bucket")).toMatch(/^[0-9a-f]{32}$/);
    discord.clock.advance(2000);
    const others = [await post(), await post(), await post(), await post()];
    expect(others.map(remaining)).toEqual([3, 2, 1, 0]);
    expect(others.map(resetAfter)).toEqual([3, 3, 3, 3]);

    const refused = await post();
    expect(refused.status).toBe(429);
    expect(refused.body).toMatchObject({ retry_after: 3, global: false });
    expect(refused.headers.get("retry-after")).toBe("3");
    expect(refused.headers.get("x-ratelimit-scope")).toBe("user");
    discord.clock.advance(3000);
    expect(remaining(await post())).toBe(4);
  });

  test("a leaky counter makes calls available again one at a time", async () => {
    const messages = { kind: "leaky", limit: 5, windowMs: 5000 } as const;
    const { discord, post } = await startChannel({ limits: { messages }, allow: { "rate-limited": 1 } });
    const answers = [await post(), await post(), await post(), await post(), await post()];
    expect(answers.map(resetAfter)).toEqual([1, 2, 3, 4, 5]);
    discord.clock.advance(1000);
    expect((await post()).status).toBe(200);
    expect((await post()).body).toMatchObject({ retry_after: 1 });
  });

  test("a sliding counter counts the calls of any window", async () => {
    const messages = { kind: "sliding", limit: 2, windowMs: 5000 } as const;
    const { discord, post } = await startChannel({ limits: { messages }, allow: { "rate-limited": 1 } });
    await post();
    discord.clock.advance(4000);
    await post();
    discord.clock.advance(1500);
    expect((await post()).status).toBe(200);
    expect((await post()).body).toMatchObject({ retry_after: 3.5 });
  });

  test("posts and edits can share a counter, have two counters, or have two counters under one bucket hash", async () => {
    for (const [postsAndEdits, left, isOneHash] of [
      ["one-bucket", 3, true],
      ["two-buckets", 4, false],
      ["one-hash-two-counters", 4, true],
    ] as const) {
      const { channel, call, post } = await startChannel({ limits: { postsAndEdits } });
      const posted = await post();
      const edited = await call("PATCH", `/channels/${channel.id}/messages/${String(posted.body["id"])}`, {
        content: "other",
      });
      expect(remaining(edited)).toBe(left);
      const hashes = [posted, edited].map(({ headers }) => headers.get("x-ratelimit-bucket"));
      expect(new Set(hashes).size).toBe(isOneHash ? 1 : 2);
    }
  });

  test("each channel has its own counter", async () => {
    const { discord, post } = await startChannel();
    const other = discord.addChannel(discord.addGuild(), "other");
    await post();
    expect(remaining(await post(other))).toBe(4);
  });

  test("responses without headers reveal nothing about the counters", async () => {
    const { post } = await startChannel({ limits: { headers: false } });
    expect((await post()).headers.get("x-ratelimit-limit")).toBeNull();
  });

  test("the global limit refuses the 51st call in a second, whatever its route", async () => {
    const other = { kind: "fixed", limit: 1000, windowMs: 1000 } as const;
    const { call } = await startChannel({ limits: { other }, allow: { "rate-limited": 1 } });
    const answers = [];
    for (let count = 0; count < 51; count++) answers.push(await call("GET", "/users/@me"));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(50);
    expect(answers.at(-1)?.headers.get("x-ratelimit-global")).toBe("true");
    expect(answers.at(-1)?.body).toMatchObject({ global: true });
  });

  test("calls for interactions do not count towards the global limit", async () => {
    const many = { kind: "fixed", limit: 1000, windowMs: 1000 } as const;
    const { discord, ada, channel, call } = await startChannel({ limits: { interactions: many } });
    await call("PUT", `/applications/${discord.bot.id}/commands`, [{ name: "ask", description: "Ask" }]);
    const { id, token } = discord.people.command(channel, ada, "ask");
    const open = { token: null };
    await call("POST", `/interactions/${id}/${token}/callback`, { type: 5 }, open);
    for (let count = 0; count < 60; count++) {
      const read = await call("GET", `/webhooks/${discord.bot.id}/${token}/messages/@original`, undefined, open);
      expect(read.status).toBe(200);
    }
  });

  test("the simulator notices a call before the end of a wait", async () => {
    const { discord, post } = await startChannel({ allow: "anything" });
    for (let count = 0; count < 6; count++) await post();
    discord.clock.advance(1000);
    expect((await post()).body).toMatchObject({ retry_after: 4 });
    expect(discord.violations.map(({ kind }) => kind)).toEqual(["rate-limited", "early-retry"]);
    expect(discord.violations[0]?.sentence).toMatch(/5 per 5 s, fixed.*5\.00 s too early/);
  });

  test("an injected wait applies to its channel", async () => {
    const { discord, post } = await startChannel({ allow: { "early-retry": 1 } });
    discord.faults.failNext("POST /channels/:channel/messages", { status: 429, retryAfterMs: 7000, scope: "shared" });
    const refused = await post();
    expect([refused.status, refused.headers.get("x-ratelimit-scope")]).toEqual([429, "shared"]);
    expect((await post()).status).toBe(429);
    expect((await post(discord.addChannel(discord.addGuild(), "other"))).status).toBe(200);
    discord.clock.advance(7000);
    expect((await post()).status).toBe(200);
  });
});
