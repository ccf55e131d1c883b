import { describe, expect, test } from "vitest";
import { ApiError } from "../../../../adapters/discord/api/error.ts";
import { createIsThere } from "../../../../adapters/discord/hear/access.ts";
import { createStillClock } from "../../../../lab/discord-sim/clock.ts";
import { botTexts, signal, startStage } from "../stage.ts";

describe("channels where the bot cannot write", () => {
  test("the bot tells a user once an hour, in a direct message, that it cannot write where they asked", async () => {
    const clock = createStillClock();
    const { discord, channel, ada, events } = await startStage({ simulator: { clock, allow: { "double-post": 1 } } });
    discord.overwrite(channel, discord.bot.id, { deny: ["SendMessages"] });
    for (const text of ["one", "two"]) discord.people.say(channel, ada, text, { mentionBot: true });
    const dm = discord.openDm(ada);
    await discord.until(() => botTexts(discord, dm).length === 1);
    expect(botTexts(discord, dm)[0]).toMatch(/#general.*permission to write there/);
    clock.advance(61 * 60_000);
    discord.people.say(channel, ada, "three", { mentionBot: true });
    await discord.until(() => botTexts(discord, dm).length === 2);
    expect(events).toEqual([]);
  });

  test("the bot sends no notice about missing permissions to users who asked the bot nothing", async () => {
    const { discord, channel, ada, bob, heard, events } = await startStage();
    const thread = discord.people.openThread(channel, ada, "thread");
    discord.overwrite(channel, discord.bot.id, { deny: ["SendMessagesInThreads"] });
    discord.people.say(thread, bob, "just talking");
    await heard(channel, ada);
    expect(events).toEqual([]);
    expect(botTexts(discord, discord.openDm(bob))).toEqual([]);
  });

  test("a bot that can write only in threads answers there and not in their channel", async () => {
    const { discord, channel, ada, message } = await startStage();
    const thread = discord.people.openThread(channel, ada, "thread");
    discord.overwrite(channel, discord.bot.id, { deny: ["SendMessages"] });
    discord.people.say(thread, ada, "here?", { mentionBot: true });
    expect((await message(0)).text).toBe("here?");
  });
});

test("isThere waits for a rate limit that other calls have used up", async () => {
  let calls = 0;
  const call = async () => {
    if (calls++ < 3) throw new ApiError("Too many calls.", { status: 429, code: 0, retryAfterMs: 1 });
    return { data: { id: "1" } };
  };
  expect(await createIsThere({ api: { call } })("ada", { platform: "discord", channelId: "1" }, signal)).toBe(true);
});
