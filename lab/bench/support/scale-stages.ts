import { createDiscord } from "../../discord-sim/simulator.ts";
import { shown } from "../../discord-sim/world.ts";
import { createRandom, toRoundTrip } from "../../pacing/random.ts";
import { DISCORD_TRIP_MS, SLACK_TRIP_MS } from "../../pacing/trials.ts";
import { openSlack } from "../../slack-sim/control.ts";
import { startSlowProxy } from "./slow-proxy.ts";

/** A simulated platform for several processes of the service. */
export interface ScaleStage {
  env: Record<string, string>;
  /** Sends all further events to this process, if the platform delivers to a single one. */
  deliverTo(url: string): void;
  ask(question: string): Promise<Answer>;
  countRefused(): number;
  close(): Promise<void>;
}

interface Answer {
  text(): string;
  count(): number;
  /** The text's length after each change, with the time of the change by this machine's clock. */
  states(): Array<{ atMs: number; length: number }>;
}

export async function openSlackStage(isNative: boolean): Promise<ScaleStage> {
  const slack = await openSlack({ streaming: isNative ? "on" : "unknown_method" });
  const random = createRandom(1);
  const proxy = await startSlowProxy(slack.apiUrl, () => toRoundTrip(random, SLACK_TRIP_MS));
  const aheadMs = slack.now() - Date.now();
  const ada = slack.user({ name: "Ada" });
  return {
    env: {
      SLACK_BOT_TOKEN: slack.botToken,
      SLACK_SIGNING_SECRET: slack.signingSecret,
      SLACK_API_URL: `${proxy.origin}/api/`,
    },
    deliverTo: (url) => slack.deliverTo(`${url}/slack/events`),
    async ask(question) {
      // Each question has its own asker, because one person gets only half of the slots.
      const person = slack.user({ name: question });
      const channel = slack.channel({ name: question.replaceAll(" ", "-"), members: [ada, person] });
      const { ts } = person.mention(channel, question);
      return {
        text: () => slack.texts(channel, ts).join(" "),
        count: () => slack.answers(channel, ts).length,
        states: () =>
          (slack.answers(channel, ts)[0]?.states ?? []).map(({ atMs, shown: seen }) => ({
            atMs: atMs - aheadMs,
            length: seen.length,
          })),
      };
    },
    countRefused: () => slack.violations.filter(({ kind }) => kind.includes("rate")).length,
    async close() {
      await proxy.close();
      await slack.close();
    },
  };
}

/** Asks all questions in one channel if `isShared`, otherwise each in its own. */
export async function openDiscordStage({ isShared = true } = {}): Promise<ScaleStage> {
  const discord = await createDiscord();
  const random = createRandom(1);
  const proxy = await startSlowProxy(discord.apiUrl, () => toRoundTrip(random, DISCORD_TRIP_MS));
  const guild = discord.addGuild();
  const general = discord.addChannel(guild, "general");
  return {
    env: {
      DISCORD_TOKEN: discord.token,
      DISCORD_API_URL: new URL(new URL(discord.apiUrl).pathname, proxy.origin).href,
    },
    deliverTo: () => {},
    async ask(name) {
      const person = discord.addUser(name, guild);
      const channel = isShared ? general : discord.addChannel(guild, name.replaceAll(" ", "-"));
      const question = discord.people.say(channel, person, name, { mentionBot: true });
      const answers = () =>
        discord
          .messages(channel)
          .filter(({ author, reference }) => author === discord.bot && reference?.messageId === question.id);
      const answer = () => answers()[0];
      return {
        text: () => {
          const found = answer();
          return found === undefined ? "" : shown(found).content;
        },
        count: () => answers().length,
        states: () => (answer()?.states ?? []).map(({ atMs, content }) => ({ atMs, length: content.length })),
      };
    },
    countRefused: () => discord.requests.filter(({ status }) => status === 429).length,
    async close() {
      await proxy.close();
      await discord.close();
    },
  };
}
