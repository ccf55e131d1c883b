import { describe, expect, test } from "vitest";
import { PERMISSIONS } from "../../../adapters/discord/api/permissions.ts";
import { checkDiscord } from "../../../adapters/discord/check.ts";
import type { Finding } from "../../../src/port/finding.ts";
import { type Discord, type DiscordOptions, startDiscord } from "../../support/discord.ts";
import { signal, startAdapter } from "./stage.ts";

const NAMES = PERMISSIONS.map(({ name }) => name as "ViewChannel");

async function check(
  discord: Discord,
  more: { token?: string; guildId?: string; hasRules?: boolean } = {},
): Promise<Finding[]> {
  return checkDiscord({ token: discord.token, apiUrl: discord.apiUrl, ...more }, signal);
}

const wrong = (findings: readonly Finding[]) => findings.filter(({ ok }) => !ok);

/** A server that gives the bot only the permissions of its invitation. */
async function startInvited(options: DiscordOptions = {}) {
  const discord = await startDiscord(options);
  const guild = discord.addGuild({ name: "Team", everyone: [], bot: NAMES });
  const channel = discord.addChannel(guild, "general");
  return { discord, guild, channel };
}

describe("the check of a Discord installation", () => {
  test("the check finds nothing wrong with a bot that was invited by its link, and starts no session", async () => {
    const { discord } = await startInvited();
    await startAdapter(discord);
    await discord.until(() => discord.commands().length > 0);
    const sessions = discord.gateway.sessions.length;
    const findings = await check(discord);
    expect(wrong(findings)).toEqual([]);
    expect(findings.map(({ what }) => what).join("\n")).toMatch(
      /accepts the token: the bot is palaver.*Message Content intent is switched on.*gateway answers.*starts are left.*In Team the bot has what it needs.*registered: ask/s,
    );
    expect(discord.gateway.sessions).toHaveLength(sessions);
  });

  test("the check reports a malformed token, and an unknown one", async () => {
    const { discord } = await startInvited({ allow: "anything" });
    const strange = `${Buffer.from(discord.bot.id).toString("base64url")}.abcdef.SECRETPART`;
    for (const token of ["SECRETPART", strange]) {
      const findings = await check(discord, { token });
      expect(findings).toHaveLength(1);
      expect(findings[0]).toMatchObject({ ok: false, fix: expect.stringContaining("Developer Portal") });
      expect(JSON.stringify(findings)).not.toContain("SECRETPART");
    }
  });

  test("the check reports a missing Message Content intent", async () => {
    const { discord } = await startInvited({ intents: { messageContent: false } });
    expect(wrong(await check(discord))).toEqual([
      {
        ok: false,
        what: expect.stringContaining("Message Content"),
        fix: expect.stringContaining("switch the intent on"),
      },
    ]);
  });

  test("the check warns of a public bot, which strangers can use at the operator's cost, unless rules limit it", async () => {
    const { discord } = await startInvited({ isPublic: true });
    expect(wrong(await check(discord))).toEqual([
      {
        ok: false,
        what: expect.stringContaining("Public Bot is switched on"),
        fix: expect.stringContaining("Install Link"),
      },
    ]);
    expect(wrong(await check(discord, { hasRules: true }))).toEqual([]);
    const { discord: own } = await startInvited({ isPublic: false });
    expect(wrong(await check(own))).toEqual([]);
  });

  test("the check reports how many sessions Discord still lets the bot start", async () => {
    const { discord } = await startInvited({ sessions: { remaining: 0 } });
    expect(wrong(await check(discord))).toEqual([
      { ok: false, what: expect.stringContaining("0 of 1000 session starts"), fix: expect.any(String) },
    ]);
  });

  test("the check reports a bot that is on no server, or not on the configured one", async () => {
    const discord = await startDiscord();
    const link = { label: "Add to a server", url: expect.stringContaining("https://discord.com/oauth2/authorize?") };
    expect(wrong(await check(discord))).toEqual([{ ok: false, what: "The bot isn't in any server yet.", link }]);
    const guild = discord.addGuild({ hasBot: false });
    discord.addGuild({ everyone: NAMES });
    const [missing] = wrong(await check(discord, { guildId: guild.id }));
    expect(missing).toEqual({ ok: false, what: `The bot is not in the server ${guild.id}.`, link });
    discord.addGuild({ name: "Bare", everyone: [] });
    const team = discord.addGuild({ name: "Team", everyone: NAMES });
    expect(wrong(await check(discord, { guildId: team.id }))).toEqual([]);
  });

  test("the check finds a server beyond the first page", async () => {
    const { discord } = await startInvited();
    discord.faults.failNext("GET /applications/:application/guilds/:guild/commands", { status: 403, code: 50001 });
    for (let count = 0; count < 200; count++) discord.addGuild({ everyone: NAMES });
    const last = discord.addGuild({ name: "Last", everyone: NAMES });
    const findings = await check(discord, { guildId: last.id });
    expect(wrong(findings)).toEqual([]);
    expect(findings.map(({ what }) => what).join()).toContain("In Last the bot has what it needs");
  });

  test("the check names the permissions that a server withholds, with their purpose", async () => {
    const discord = await startDiscord();
    const guild = discord.addGuild({ name: "Team", everyone: NAMES.filter((name) => !/Attach|Threads/.test(name)) });
    discord.addChannel(guild, "general");
    const findings = wrong(await check(discord));
    expect(findings).toHaveLength(1);
    expect(findings[0]?.what).toMatch(/^In Team the bot lacks: .*Create Public Threads.*Attach Files \(to post images/);
  });

  test("the check computes permissions in each channel, from overwrites of roles and of the bot itself", async () => {
    const { discord, guild, channel } = await startInvited();
    const forum = discord.addChannel(guild, "forum", { kind: "forum" });
    discord.addChannel(guild, "open");
    discord.addChannel(guild, "board", { overwrites: { [guild.id]: { deny: ["ViewChannel"] } } });
    discord.overwrite(channel, guild.id, { deny: ["SendMessages"] });
    discord.overwrite(forum, discord.bot.id, { deny: ["SendMessagesInThreads"] });
    const findings = await check(discord);
    expect(wrong(findings).map(({ what }) => what)).toEqual([
      "In #general of Team the bot lacks: Send Messages (to answer in a channel).",
      "In #forum of Team the bot lacks: Send Messages in Threads (to answer in threads and forum posts).",
    ]);
    expect(findings.map(({ what }) => what).join()).toContain("does not see #board");
  });

  test("the check counts a permission as granted if one role of the bot allows it and another role denies it", async () => {
    const { discord, guild, channel } = await startInvited();
    const [one, two] = [discord.addRole(guild, "one"), discord.addRole(guild, "two")];
    for (const role of [one, two]) discord.giveRole(guild, discord.bot, role);
    discord.overwrite(channel, one.id, { deny: ["SendMessages"] });
    expect(wrong(await check(discord))).toHaveLength(1);
    discord.overwrite(channel, two.id, { allow: ["SendMessages"] });
    expect(wrong(await check(discord))).toEqual([]);
  });

  test("the check counts every permission in every channel as granted if the bot is an administrator", async () => {
    const discord = await startDiscord();
    const guild = discord.addGuild({ everyone: [], bot: ["Administrator"] });
    discord.addChannel(guild, "closed", { overwrites: { [guild.id]: { deny: ["ViewChannel", "SendMessages"] } } });
    expect(wrong(await check(discord))).toEqual([]);
  });

  test("the check reports a question that Discord did not answer, and continues with the rest", async () => {
    const { discord } = await startInvited({ allow: "anything" });
    discord.faults.failNext("GET /gateway/bot", { status: 500 });
    expect(wrong(await check(discord)).map(({ what }) => what)).toEqual([
      expect.stringMatching(/^Could not check the gateway/),
    ]);
    const { apiUrl, token } = discord;
    await discord.close();
    const [finding, ...more] = await checkDiscord({ token, apiUrl }, signal);
    expect(more).toEqual([]);
    expect(finding).toMatchObject({ ok: false, what: expect.stringMatching(/cannot be reached/) });
  });
});
