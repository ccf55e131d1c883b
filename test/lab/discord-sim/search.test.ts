import { describe, expect, test } from "vitest";
import { startDiscord } from "../../support/discord.ts";

async function start(options: Parameters<typeof startDiscord>[0] = {}) {
  const discord = await startDiscord({ allow: "anything", ...options });
  const guild = discord.addGuild();
  const ada = discord.addUser("ada", guild);
  const [open, closed] = [discord.addChannel(guild, "open"), discord.addChannel(guild, "closed")];
  for (const channel of [open, closed]) discord.people.say(channel, ada, `boat in ${channel.name}`);
  discord.overwrite(closed, discord.bot.id, { deny: ["ViewChannel"] });
  const search = async (query: string) => {
    const url = `${discord.apiUrl}/v10/guilds/${guild.id}/messages/search?${query}`;
    const response = await fetch(url, { headers: { authorization: `Bot ${discord.token}` } });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  return { discord, guild, open, search };
}

describe("the search of a guild's messages", () => {
  test("a search finds messages that the bot can read, each in a separate list", async () => {
    const { search } = await start();
    const { status, body } = await search("content=BOAT");
    expect([status, body["total_results"]]).toEqual([200, 1]);
    expect(body["messages"]).toMatchObject([[{ content: "boat in open" }]]);
  });

  test("a search on a server that is not indexed yet gets the status 202 and a wait", async () => {
    const { discord, search } = await start();
    discord.search.unready = 1;
    expect(await search("content=boat")).toMatchObject({ status: 202, body: { code: 110000, retry_after: 1 } });
    expect((await search("content=boat")).status).toBe(200);
  });

  test("the simulator refuses a search that Discord does not allow", async () => {
    const { guild, search } = await start();
    expect((await search("content=boat&limit=26")).status).toBe(400);
    expect((await search("content=boat&offset=9976")).status).toBe(400);
    expect((await search(`content=${"x".repeat(1_025)}`)).status).toBe(400);
    for (const role of guild.roles.values()) role.permissions = 0n;
    expect((await search("content=boat")).status).toBe(403);
    const without = await start({ intents: { messageContent: false } });
    expect((await without.search("content=boat")).status).toBe(403);
  });
});
