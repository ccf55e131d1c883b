import { describe, expect, test } from "vitest";
import { createDiscord } from "../../lab/discord-sim/simulator.ts";
import { shown } from "../../lab/discord-sim/world.ts";
import { isRedisMissing } from "../../lab/support/redis.ts";
import type { OnEnd } from "../support/listen.ts";
import { readMetric, shareScene, startCrew } from "./crew.ts";
import { answersOf, botMessages } from "./discord-service.ts";

async function startServer(onEnd: OnEnd) {
  const discord = await createDiscord();
  onEnd(async () => {
    await discord.close();
    discord.assertClean();
  });
  const guild = discord.addGuild();
  const ada = discord.addUser("Ada", guild);
  const env = { DISCORD_TOKEN: discord.token, DISCORD_API_URL: discord.apiUrl, DISCORD_THREADS: "off" };
  const crew = await startCrew(env, onEnd);
  await discord.until(() => discord.commands().length > 0, "the commands");
  const enter = () => ({ discord, ada, crew, channel: discord.addChannel(guild, `room-${(rooms += 1)}`) });
  let rooms = 0;
  return { enter };
}

describe.skipIf(isRedisMissing)("an ingress and two workers on Discord (needs redis-server)", () => {
  const shared = shareScene(startServer);
  /** A separate channel for each test, in the shared scene. */
  const scene = () => shared().enter();

  test("workers answer the questions that only the ingress receives, and the ingress writes nothing", async () => {
    const { discord, channel, ada, crew } = scene();
    discord.people.say(channel, ada, "Say: hello", { mentionBot: true });
    expect((await answersOf(discord, channel, 1)).map((answer) => shown(answer).content)).toEqual(["hello"]);
    expect(await readMetric(crew.ingress, "turns_total")).toBe(0);
  });

  test("workers answer commands, privately too, and create images from commands and buttons", async () => {
    const { discord, channel, ada } = scene();
    const models = await discord.people.autocomplete(channel, ada, "model", "name", { name: "sandbox" });
    expect(models.map(({ name }) => name)).toContain("sandbox-chat");
    discord.people.command(channel, ada, "ask", { prompt: "Say: between us", private: true });
    const isSaid = () => botMessages(discord, channel).some((one) => shown(one).content === "between us");
    await discord.until(isSaid, "the private answer");

    const pictures = () => botMessages(discord, channel).filter((one) => shown(one).attachments.length > 0);
    discord.people.command(channel, ada, "imagine", { prompt: "a lighthouse" });
    const first = await discord.until(() => pictures()[0], "the picture");
    discord.people.press(first, ada, "Vary");
    const second = await discord.until(() => pictures()[1], "the other picture");
    expect(shown(second).content).toContain("1 reference picture");
  });

  test("the bot answers once an event that two ingresses receive, before and after one ingress leaves", async () => {
    const { discord, channel, ada, crew } = scene();
    const first = crew.ingress;
    const before = discord.gateway.heardBy(0).length;
    await crew.open("ingress");
    discord.people.say(channel, ada, "Say: one", { mentionBot: true });
    await answersOf(discord, channel, 1);
    discord.people.command(channel, ada, "ask", { prompt: "Say: two" });
    // The promised answer has no text yet.
    await discord.until(() => botMessages(discord, channel).length === 2, "the acknowledgement");
    const ending = first.end("SIGTERM");
    await discord.until(() => discord.gateway.heardBy(0).at(-1) === 2, "both to hear");
    discord.people.say(channel, ada, "Say: three", { mentionBot: true });
    expect(await ending).toBe(0);
    const said = () => botMessages(discord, channel).map((answer) => shown(answer).content);
    // Messages that arrive before the answer has started are answered together with the question, in one message.
    await discord.until(() => said().includes("three"), "the answer that began while both heard");
    discord.people.say(channel, ada, "Say: four", { mentionBot: true });
    await discord.until(() => said().includes("two") && said().includes("four"), "the answers");
    expect(said()).toEqual(["one", "two", "three", "four"]);
    expect(discord.gateway.heardBy(0).slice(before)).toEqual([2, 1]);
  });
});
