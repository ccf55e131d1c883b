import { RateLimitError, RESTEvents, Routes } from "discord.js";
import { describe, expect, test } from "vitest";
import { createStillClock } from "../../../lab/discord-sim/clock.ts";
import { startDiscord } from "../../support/discord.ts";
import { startBot, startClient } from "../../support/discord-client.ts";

const EDIT = "/channels/:id/messages/:id";
const QUICK = { kind: "fixed", limit: 5, windowMs: 300 } as const;

describe("discord.js under simulated limits", () => {
  test("discord.js waits in its queue for the headers it received, and is never refused", async () => {
    const { discord, channel, client } = await startBot({ limits: { messages: QUICK } });
    const place = await client.channels.fetch(channel.id);
    if (!place?.isSendable()) throw new Error("Not a text channel.");
    for (let count = 0; count < 12; count++) await place.send(`text ${count}`);
    expect(discord.messages(channel)).toHaveLength(12);
    expect(discord.requests.every(({ status }) => status === 200)).toBe(true);
  });

  test("discord.js throws instead of waiting if configured to", async () => {
    const discord = await startDiscord({ clock: createStillClock(), limits: { postsAndEdits: "two-buckets" } });
    const channel = discord.addChannel(discord.addGuild(), "general");
    const client = await startClient(discord, {
      rest: { rejectOnRateLimit: ({ method, route }) => method === "PATCH" && route === EDIT },
    });
    const buckets = new Set<string>();
    client.rest.on(RESTEvents.Response, (_, { headers }) => buckets.add(String(headers.get("x-ratelimit-bucket"))));
    const place = await client.channels.fetch(channel.id);
    if (!place?.isSendable()) throw new Error("Not a text channel.");
    const sent = await place.send("0");
    for (let count = 1; count <= 5; count++) await sent.edit(String(count));
    await expect(sent.edit("6")).rejects.toBeInstanceOf(RateLimitError);
    expect(buckets.size).toBeGreaterThanOrEqual(2);
    expect(discord.messages(channel)[0]?.states).toHaveLength(6);
  });

  test("discord.js retries a failed post, and an enforced nonce prevents a second message", async () => {
    const { discord, channel, client } = await startBot();
    discord.faults.failNext("POST /channels/:channel/messages", { status: 502, when: "after" });
    await client.rest.post(Routes.channelMessages(channel.id), {
      body: { content: "once", nonce: "1", enforce_nonce: true },
    });
    expect(discord.requests.filter(({ route }) => route.startsWith("POST")).map(({ status }) => status)).toEqual([
      502, 200,
    ]);
    expect(discord.messages(channel)).toHaveLength(1);
  });

  test("discord.js counts refusals", async () => {
    const limits = { messages: QUICK, headers: false };
    const { discord, channel, client } = await startBot({
      clock: createStillClock(),
      allow: { "rate-limited": 1 },
      limits,
    });
    const posts = Array.from({ length: 6 }, (_, index) =>
      client.rest.post(Routes.channelMessages(channel.id), { body: { content: `text ${index}` } }),
    );
    await discord.until(() => discord.violations.length === 1);
    discord.clock.advance(300);
    await Promise.all(posts);
    expect(discord.violations.map(({ kind }) => kind)).toEqual(["rate-limited"]);
    expect(discord.messages(channel)).toHaveLength(6);
  });
});
