import { createDiscord } from "../../test/simulators/discord/simulator.ts";
import { shown } from "../../test/simulators/discord/world.ts";
import { openSlack } from "../../test/simulators/slack/control.ts";
import { createRandom, toRoundTrip } from "../../test/support/pacing/random.ts";
import { DISCORD_TRIP_MS, SLACK_TRIP_MS } from "../../test/support/pacing/trials.ts";
import { startSlowProxy } from "./slow-proxy.ts";

/** A simulated platform that several processes serve. */
export interface ScaleStage {
  env: Record<string, string>;
  /** Delivers events to this process from now on, where the platform delivers to a single one. */
  hear(url: string): void;
  ask(question: string): Promise<Answer>;
  countRefused(): number;
  close(): Promise<void>;
}

interface Answer {
  text(): string;
  /** The number of answers to the question. */
  count(): number;
  /** The length shown after each change, with its time by this machine's clock. */
  states(): Array<{ atMs: number; length: number }>;
}

/** One workspace, each question in a channel of its own. */
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
    hear: (url) => slack.deliverTo(`${url}/slack/events`),
    async ask(question) {
      // Another person each time, as in a team: one alone gets half of the places.
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

/** All questions in one channel, or each in one of its own. */
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
    hear: () => {},
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
