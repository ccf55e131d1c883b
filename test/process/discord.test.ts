import { describe, expect, test } from "vitest";
import type { Discord } from "../../lab/discord-sim/simulator.ts";
import { makeDataDir, type RunningService, startService } from "../../lab/support/service.ts";
import type { OnEnd } from "../support/listen.ts";
import { answersOf, botMessages, startChannel } from "./discord-service.ts";

async function open(
  discord: Discord,
  onEnd: OnEnd,
  dataDir?: string,
): Promise<{ service: RunningService; dataDir: string }> {
  let path = dataDir;
  if (path === undefined) {
    const folder = await makeDataDir();
    onEnd(folder.remove);
    path = folder.path;
  }
  const env = { DISCORD_TOKEN: discord.token, DISCORD_API_URL: discord.apiUrl, DISCORD_THREADS: "off" };
  const service = await startService(path, env);
  onEnd(async () => void (await service.end("SIGKILL")));
  return { service, dataDir: path };
}

/** A service in the middle of a long answer that is partly visible. The whole answer is `numbers`. */
async function startAnswering(onEnd: OnEnd) {
  const { discord, channel, ada } = await startChannel(onEnd);
  const numbers = Array.from({ length: 120 }, (_, index) => String(index + 1)).join(" ");
  const first = await open(discord, onEnd);
  discord.people.say(channel, ada, `At 60 tokens per second, say: ${numbers}`, { mentionBot: true });
  await discord.until(() => botMessages(discord, channel).some(({ states }) => states.length >= 2));
  return { discord, channel, numbers, first };
}

describe.concurrent("the service on Discord", () => {
  test("the service answers a mention on Discord and remembers the reply chain after a restart", async ({
    onTestFinished,
  }) => {
    const { discord, channel, ada } = await startChannel(onTestFinished);
    const first = await open(discord, onTestFinished);
    discord.people.say(channel, ada, "My name is Ada.", { mentionBot: true });
    const [answer] = await answersOf(discord, channel, 1);
    expect(await first.service.end("SIGTERM")).toBe(0);

    await open(discord, onTestFinished, first.dataDir);
    discord.people.say(channel, ada, "What is my name?", { replyTo: answer, mentionBot: true });
    const answers = await answersOf(discord, channel, 2);
    expect(answers[1]?.states.at(-1)?.content).toContain("Ada");
  });

  test("a killed service completes its answer on Discord in the same message after a restart", async ({
    onTestFinished,
  }) => {
    const { discord, channel, numbers, first } = await startAnswering(onTestFinished);
    await first.service.end("SIGKILL");

    await open(discord, onTestFinished, first.dataDir);
    const answers = await answersOf(discord, channel, 1);
    expect(answers.map(({ states }) => states.at(-1)?.content)).toEqual([numbers]);
  });

  test("a service whose Discord token is revoked exits without a grace period, and completes its answer with a valid token", async ({
    onTestFinished,
  }) => {
    const { discord, channel, numbers, first } = await startAnswering(onTestFinished);
    discord.faults.failNext("PATCH /channels/:channel/messages/:message", { status: 401, times: Infinity });
    // This signal has no effect, so the service must exit without one.
    expect(await first.service.end("SIGCONT")).toBe(1);
    const log = first.service.lines.join("\n");
    expect(log).toContain("Discord does not accept the token. Copy the bot's token from the Discord Developer Portal");
    expect(log).toContain("within 7 s");
    expect(log).not.toContain("the shutdown timed out");

    discord.faults.clear();
    await open(discord, onTestFinished, first.dataDir);
    const answers = await answersOf(discord, channel, 1);
    expect(answers.map(({ states }) => states.at(-1)?.content)).toEqual([numbers]);
  });
});
