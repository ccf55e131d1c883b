import { describe, expect, test } from "vitest";
import { isRedisMissing, type RedisServer, startRedis } from "../../lab/support/redis.ts";
import { type RunningService, startService } from "../../lab/support/service.ts";
import { startDiscord } from "../support/discord.ts";
import { eventually } from "../support/eventually.ts";
import type { OnEnd } from "../support/listen.ts";
import { answersIn, makeFolder, start } from "./slack-service.ts";

const MINUTE_MS = 60_000;

describe
  .skipIf(isRedisMissing)
  .concurrent("messages that people write while Redis is away (needs redis-server)", () => {
    async function open(onEnd: OnEnd): Promise<RedisServer> {
      const redis = await startRedis({ isKept: true });
      onEnd(redis.stop);
      return redis;
    }

    async function restart(redis: RedisServer, { url }: RunningService): Promise<void> {
      await redis.restart();
      await eventually(async () => (await fetch(`${url}/readyz`)).status).toBe(200);
    }

    test.for(["HTTP", "Socket Mode"] as const)(
      "while Redis is away, Slack over %s gets no acknowledgement and delivers again, and the bot answers the question once",
      async (transport, { onTestFinished }) => {
        const redis = await open(onTestFinished);
        const { slack, ada, general, service } = await start(transport, { REDIS_URL: redis.url }, onTestFinished);
        slack.allow("late-ack");
        await redis.kill();
        const asked = ada.mention(general, "Say: here I am");
        ada.mention(general, "!usage");
        const told = () => slack.ephemerals(general, ada.id).map(({ shown }) => shown);
        await slack.until(
          () => told().some((words) => words.includes("if it's back within a few minutes")),
          "word of what was said",
        );
        const attempts = () => slack.deliveries.map((delivery) => delivery.attempts.length);
        await eventually(() => attempts().length > 0 && Math.min(...attempts())).toBe(2);
        const taken = slack.deliveries.flatMap((delivery) => delivery.attempts).filter((one) => one.isAcknowledged);
        expect(taken).toEqual([]);
        await restart(redis, service);
        slack.advance(MINUTE_MS);
        expect(await answersIn(slack, general, asked)).toEqual(["here I am"]);
        await slack.acknowledged();
        expect(slack.answers(general)).toHaveLength(1);
      },
    );

    test("while Redis is away, the service keeps retrying to store a message that Discord delivered once, and later answers it once", async ({
      onTestFinished,
    }) => {
      const redis = await open(onTestFinished);
      const discord = await startDiscord({}, onTestFinished);
      const guild = discord.addGuild();
      const channel = discord.addChannel(guild, "general");
      const ada = discord.addUser("Ada", guild);
      const service = await startService(await makeFolder(onTestFinished), {
        DISCORD_TOKEN: discord.token,
        DISCORD_API_URL: discord.apiUrl,
        DISCORD_THREADS: "off",
        REDIS_URL: redis.url,
      });
      onTestFinished(async () => void (await service.end("SIGKILL")));
      await discord.until(() => discord.commands().length > 0, "the commands");
      await redis.kill();
      discord.people.say(channel, ada, "Say: here I am", { mentionBot: true });
      discord.people.command(channel, ada, "help");
      const shown = (toWhom: string | undefined) =>
        discord
          .messages(channel)
          .filter(({ author, ephemeralFor }) => author.id === discord.bot.id && ephemeralFor === toWhom)
          .map(({ states }) => states.at(-1)?.content);
      await discord.until(() => shown(ada.id)[0]?.includes("I'll do this as soon as it's back"), "word of the command");
      await eventually(
        () => service.lines.filter((line) => line.includes("Could not store an event from Discord")).length,
      ).toBe(3);
      // A command that comes after the question. No process can store it.
      discord.people.say(channel, ada, "!usage", { mentionBot: true });
      await discord.until(
        () => shown(undefined)[0]?.includes("if it's back within a few minutes"),
        "word of what was said",
      );
      await restart(redis, service);
      await discord.until(() => shown(undefined).some((words) => words?.includes("here I am")));
      expect(shown(undefined).filter((words) => words?.includes("here I am"))).toHaveLength(1);
      await discord.until(() => shown(ada.id)[0]?.includes("I'm Palaver"), "the answer to the command");
      expect(shown(ada.id)).toHaveLength(1);
    });
  });
