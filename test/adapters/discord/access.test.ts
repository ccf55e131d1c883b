import { describe, expect, test } from "vitest";
import { access as accessSchema } from "../../../src/config/policy/access.ts";
import type { Policy } from "../../../src/config/policy/policy-file.ts";
import { finished, startGuild } from "./bot-stage.ts";
import { botMessages, botTexts } from "./stage.ts";

const SAYS_NO = "You can't ask me here.";

async function start(toRules: (ids: { role: string; channel: string; category: string }) => object[]) {
  let policy: Policy = {};
  const bot = await startGuild({ policy: () => policy, scripts: [["One."], ["Two."]] });
  const role = bot.discord.addRole(bot.guild, "engineers", []);
  policy = {
    access: accessSchema.parse({ rules: toRules({ role: role.id, channel: bot.channel.id, category: "1" }) }),
  };
  return { ...bot, role };
}

describe("access rules on Discord", () => {
  test("a user without access gets one direct message that says so, and users with the role get answers", async () => {
    const bot = await start(({ role }) => [{ allow: "chat", to: `role:${role}` }, { deny: "chat" }]);
    const { discord, guild, channel, ada, bob, role, idle, requests } = bot;
    discord.giveRole(guild, bob, role);
    discord.people.say(channel, ada, "hello?", { mentionBot: true });
    discord.people.say(channel, ada, "and now?", { mentionBot: true });
    const dm = discord.openDm(ada);
    await discord.until(() => botTexts(discord, dm).length > 0);
    discord.people.say(channel, bob, "hello", { mentionBot: true });
    expect(await finished(bot, channel)).toEqual(["One."]);
    await idle();
    expect(botTexts(discord, dm)).toEqual([expect.stringContaining(SAYS_NO)]);
    expect(requests).toHaveLength(1);
  });

  test("a rule that names a role applies in direct messages too", async () => {
    const bot = await start(({ role }) => [{ deny: "chat", to: `role:${role}` }]);
    const { discord, guild, ada, bob, role, idle, requests } = bot;
    discord.giveRole(guild, bob, role);
    const [toAda, toBob] = [discord.openDm(ada), discord.openDm(bob)];
    discord.people.say(toBob, bob, "hello?");
    discord.people.say(toAda, ada, "hello?");
    expect(await finished(bot, toAda)).toEqual(["One."]);
    await discord.until(() => botTexts(discord, toBob).length > 0);
    await idle();
    expect(botTexts(discord, toBob)).toEqual([expect.stringContaining(SAYS_NO)]);
    expect(requests).toHaveLength(1);
    // The bot looks up the roles only from time to time, not for each message.
    discord.people.say(toBob, bob, "and now?");
    discord.people.say(toAda, ada, "one more?");
    await discord.until(() => requests.length > 1);
    await idle();
    expect(
      discord.requests.filter(({ route, params }) => route.includes("/members/") && params["user"] === bob.id),
    ).toHaveLength(1);
  });

  test("a user without access who gives a command gets a private message", async () => {
    const bot = await start(() => [{ deny: "chat" }]);
    const { discord, channel, ada, idle, requests } = bot;
    await discord.until(() => discord.commands().length > 0);
    discord.people.command(channel, ada, "ask", { prompt: "hello?" });
    await discord.until(() => botTexts(discord, channel).some((text) => text.includes(SAYS_NO)));
    await idle();
    expect(botMessages(discord, channel).map(({ ephemeralFor }) => ephemeralFor)).toEqual([ada.id]);
    expect(requests).toHaveLength(0);
  });
});
