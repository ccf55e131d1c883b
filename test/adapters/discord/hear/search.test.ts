import { describe, expect, test } from "vitest";
import type { Actor } from "../../../../src/port/catalogue.ts";
import { startStage } from "../stage.ts";

const signal = new AbortController().signal;

async function start(options: Parameters<typeof startStage>[0] = {}) {
  const stage = await startStage(options);
  const { discord, channel, ada, bob, guild, adapter } = stage;
  discord.people.say(channel, bob, "the release is near");
  discord.people.say(channel, ada, "look", { mentionBot: true });
  const by = await discord.until(() => stage.events.find(({ kind }) => kind === "message"));
  const search = (words: string, given: Actor = by, cursor?: string) =>
    adapter.search?.({ words, ...(cursor !== undefined && { cursor }) }, given, signal) ?? Promise.reject();
  return { ...stage, by, search, guild };
}

describe("the search on Discord", () => {
  test("a search finds messages with their channel, author, time and link", async () => {
    const { guild, channel, search } = await start();
    const { hits, next } = await search("RELEASE");
    expect(next).toBeUndefined();
    expect(hits).toEqual([
      {
        messageId: expect.stringMatching(new RegExp(`^discord:${channel.id}:\\d+$`)),
        placeId: `discord:${channel.id}`,
        placeName: "#general",
        authorName: "bob",
        text: "the release is near",
        at: expect.any(Number),
        link: expect.stringMatching(new RegExp(`^https://discord.com/channels/${guild.id}/${channel.id}/\\d+$`)),
      },
    ]);
  });

  test("a search continues on the next page", async () => {
    const { discord, channel, bob, by, search } = await start();
    for (let index = 0; index < 26; index++) discord.people.say(channel, bob, `boat ${index}`);
    const first = await search("boat");
    expect(first.hits).toHaveLength(25);
    expect((await search("boat", by, first.next)).hits.map(({ text }) => text)).toEqual(["boat 0"]);
  });

  test("a search waits while Discord indexes the server, and gives up in one sentence", async () => {
    const { discord, search } = await start();
    discord.search.unready = 1;
    expect((await search("release")).hits).toHaveLength(1);
    discord.search.unready = 9;
    await expect(search("release")).rejects.toThrow("Discord is still preparing this server for searches.");
  });

  test("a search names the permission or the intent that the bot lacks", async () => {
    const { discord, guild, channel, search } = await start({ simulator: { allow: "anything" } });
    discord.overwrite(channel, guild.id, {});
    for (const role of guild.roles.values()) role.permissions &= ~(1n << 16n);
    await expect(search("release")).rejects.toThrow("I need the permission Read Message History on this server");
  });

  test("a search in a direct conversation says where searching works", async () => {
    const { by, search } = await start();
    const { workspaceId: _guild, ...reply } = by.reply;
    await expect(search("release", { ...by, reply })).rejects.toThrow("use `/search` in a channel of the server");
  });

  test("a search above Discord's limit says when the next one is possible", async () => {
    const { discord, search } = await start({ simulator: { allow: "anything" } });
    discord.faults.failNext("GET /guilds/:guild/messages/search", { status: 429, retryAfterMs: 30_000 });
    await expect(search("release")).rejects.toThrow("I've reached Discord's search limit. Try again in 30 s.");
  });
});
