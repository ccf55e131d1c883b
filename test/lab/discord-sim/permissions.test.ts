import { describe, expect, test } from "vitest";
import { EVERYONE } from "../../../lab/discord-sim/permissions.ts";
import { createRawClient } from "../../../lab/discord-sim/raw-client.ts";
import { startDiscord } from "../../support/discord.ts";

const code = (answer: { body: Record<string, unknown> }) => answer.body["code"];
const without = (...names: string[]) => EVERYONE.filter((name) => !names.includes(name));

describe("permissions in the simulator", () => {
  test("a bot that cannot see a channel gets the error 50001", async () => {
    const discord = await startDiscord({ allow: { "invalid-request": 1 } });
    const guild = discord.addGuild();
    const channel = discord.addChannel(guild, "hidden", { overwrites: { [guild.id]: { deny: ["ViewChannel"] } } });
    const call = createRawClient(discord);
    expect(code(await call("POST", `/channels/${channel.id}/messages`, { content: "x" }))).toBe(50001);
    expect(discord.violations[0]?.sentence).toBe(
      "POST /channels/:channel/messages was refused with 403: Missing Access.",
    );
    discord.overwrite(channel, discord.bot.id, { allow: ["ViewChannel", "SendMessages"] });
    expect((await call("POST", `/channels/${channel.id}/messages`, { content: "x" })).status).toBe(200);
  });

  test("a bot that cannot write, attach files or open threads gets the error 50013", async () => {
    const discord = await startDiscord({ allow: { "invalid-request": 3 } });
    const guild = discord.addGuild({ everyone: without("AttachFiles", "CreatePublicThreads") });
    const channel = discord.addChannel(guild, "general");
    const mute = discord.addChannel(guild, "mute", { overwrites: { [guild.id]: { deny: ["SendMessages"] } } });
    const said = discord.people.say(channel, discord.addUser("ada", guild), "hello");
    const call = createRawClient(discord);
    const files = [{ name: "a.txt", bytes: Buffer.from("a") }];
    expect(code(await call("POST", `/channels/${mute.id}/messages`, { content: "x" }))).toBe(50013);
    expect(code(await call("POST", `/channels/${channel.id}/messages`, {}, { files }))).toBe(50013);
    expect(code(await call("POST", `/channels/${channel.id}/messages/${said.id}/threads`, { name: "x" }))).toBe(50013);
  });

  test("an overwrite grants a role's missing permissions, and an administrator has all permissions", async () => {
    const discord = await startDiscord();
    const guild = discord.addGuild({ everyone: [], bot: ["Administrator"] });
    const hidden = discord.addChannel(guild, "hidden");
    const call = createRawClient(discord);
    expect((await call("POST", `/channels/${hidden.id}/messages`, { content: "x" })).status).toBe(200);
    const eve = discord.addUser("eve", guild);
    expect(() => discord.people.say(hidden, eve, "x")).toThrow("eve cannot see hidden");
    const role = discord.addRole(guild, "insiders");
    discord.giveRole(guild, eve, role);
    discord.overwrite(hidden, role.id, { allow: ["ViewChannel", "SendMessages"] });
    expect(discord.people.say(hidden, eve, "x").author).toBe(eve);
  });

  test("a bot that cannot read the history gets no messages, and its reply gets the error 160002", async () => {
    const discord = await startDiscord();
    const guild = discord.addGuild({ everyone: without("ReadMessageHistory") });
    const channel = discord.addChannel(guild, "general");
    const said = discord.people.say(channel, discord.addUser("ada", guild), "hello");
    const call = createRawClient(discord);
    expect((await call("GET", `/channels/${channel.id}/messages`)).body).toEqual([]);
    const reply = { content: "x", message_reference: { message_id: said.id } };
    expect(code(await call("POST", `/channels/${channel.id}/messages`, reply))).toBe(160002);
  });

  test("a bot that was never invited has no permissions", async () => {
    const discord = await startDiscord({ allow: { "invalid-request": 2 } });
    const guild = discord.addGuild({ hasBot: false });
    const call = createRawClient(discord);
    expect(code(await call("GET", `/guilds/${guild.id}`))).toBe(50001);
    expect(code(await call("GET", `/channels/${discord.addChannel(guild, "x").id}`))).toBe(50001);
  });

  test("calls without the bot's token get the status 401", async () => {
    const discord = await startDiscord({ allow: { "invalid-request": 1 } });
    const answer = await createRawClient(discord)("GET", "/users/@me", undefined, { token: "wrong" });
    expect([answer.status, answer.body["message"]]).toEqual([401, "401: Unauthorized"]);
  });
});
