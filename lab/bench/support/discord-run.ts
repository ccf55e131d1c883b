import type { ThreadMode } from "../../../adapters/discord/options.ts";
import type { LimitSettings } from "../../discord-sim/limits.ts";
import { createDiscord, type Discord } from "../../discord-sim/simulator.ts";
import { type Message, shown } from "../../discord-sim/world.ts";
import { type Figures, type Outcome, toFigures } from "../../pacing/measure.ts";
import { createRandom, toRoundTrip } from "../../pacing/random.ts";
import { type Arrivals, TOKEN_UNITS } from "../../pacing/scenarios.ts";
import { DISCORD_TRIP_MS } from "../../pacing/trials.ts";
import { lookFor } from "../../support/look-for.ts";
import { findTakenBack } from "../../support/taken-back.ts";
import { startDiscordEngine } from "./discord-engine.ts";
import { startPacedUpstream, wordsOf } from "./paced-upstream.ts";
import { startSlowProxy } from "./slow-proxy.ts";

const WRITES = new Set(["POST /channels/:channel/messages", "PATCH /channels/:channel/messages/:message"]);
const END_MS = 60_000;

export interface DiscordRunOptions {
  replies: readonly Arrivals[];
  threads: ThreadMode;
  limits: Partial<LimitSettings>;
  seed: number;
}

export interface DiscordRun {
  figures: Figures;
  refused: number;
  stale: number;
  /** Number of replies whose text on the platform differs from the upstream's. */
  wrong: number;
  /** Texts that people could read and that later disappeared. */
  takenBack: string[];
  /** The platform's rules that the bot broke, including texts that disappeared. */
  violations: string[];
}

/** Asks questions at the same time in one channel of a simulated server. The whole service answers in real time. */
export async function runOnDiscord({ replies, threads, limits, seed }: DiscordRunOptions): Promise<DiscordRun> {
  await using resources = new AsyncDisposableStack();
  const discord = await createDiscord({ limits });
  resources.defer(discord.close);
  const random = createRandom(seed);
  const { origin, close } = await startSlowProxy(discord.apiUrl, () => toRoundTrip(random, DISCORD_TRIP_MS));
  resources.defer(close);
  const names = replies.map((_, index) => `question ${index}`);
  const upstream = await startPacedUpstream((question) => replies[names.indexOf(question)] ?? []);
  resources.defer(upstream.close);
  const guild = discord.addGuild();
  const channel = discord.addChannel(guild, "general");
  const accepted = Promise.withResolvers<void>();
  let waiting = replies.length;
  const service = await startDiscordEngine({
    discord,
    origin,
    threads,
    gatewayUrl: upstream.url,
    onAccepted() {
      waiting -= 1;
      if (waiting === 0) accepted.resolve();
    },
  });
  resources.defer(service.close);

  const questions = names.map((name, index) =>
    discord.people.say(channel, discord.addUser(`person ${index}`, guild), name, { mentionBot: true }),
  );
  await accepted.promise;
  await lookFor(service.isIdle, END_MS);
  const calls = discord.requests.filter(({ route }) => WRITES.has(route)).length / replies.length;
  const results = questions.map((question, index) => {
    const arrivals = replies[index] ?? [];
    return toResult(findAnswer(discord, question), arrivals, upstream.startOf(names[index] ?? ""), calls);
  });
  const count = (kind: string) => discord.violations.filter((violation) => violation.kind === kind).length;
  return {
    figures: toFigures(results.map(({ outcome }) => outcome)),
    refused: discord.requests.filter(({ status }) => status === 429).length,
    stale: count("stale-edit"),
    wrong: results.filter(({ isRight }) => !isRight).length,
    takenBack: results.flatMap(({ takenBack }) => takenBack),
    violations: discord.violations.map(({ sentence }) => sentence),
  };
}

/** Returns the bot's messages in order: in the question's thread, or as a chain of replies in the channel. */
function findAnswer(discord: Discord, question: Message): Message[] {
  const own = discord
    .places()
    .flatMap((place) => discord.messages(place).filter(({ author }) => author === discord.bot));
  const inThread = own.filter(({ channelId }) => channelId === question.id);
  if (inThread.length > 0) return inThread;
  const answer: Message[] = [];
  for (let last: Message | undefined = question; last !== undefined; ) {
    const { id }: Message = last;
    last = own.find(({ reference }) => reference?.messageId === id);
    if (last !== undefined) answer.push(last);
  }
  return answer;
}

function toResult(
  answer: readonly Message[],
  arrivals: Arrivals,
  startMs: number,
  calls: number,
): { outcome: Outcome; isRight: boolean; takenBack: string[] } {
  const whole = wordsOf(arrivals).join("");
  let end = 0;
  const showings = answer.flatMap((message) => {
    // Each message starts after the white space at the end of the previous message.
    const start = whole.length - whole.slice(end).trimStart().length;
    end = start + shown(message).content.length;
    return message.states.map(({ atMs, content }) => ({
      at: atMs - startMs,
      tokens: Math.ceil((start + content.length) / TOKEN_UNITS),
    }));
  });
  const texts = answer.map((message) => shown(message).content);
  return {
    outcome: { arrivals, showings: showings.toSorted((a, b) => a.at - b.at), calls, refused: 0 },
    isRight: texts.join(" ").replaceAll(/\s+/g, " ") === whole.replaceAll(/\s+/g, " ").trimEnd(),
    takenBack: answer.flatMap(({ states }) => findTakenBack(states.map(({ content }) => content))),
  };
}
