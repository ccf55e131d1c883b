import type { ThreadMode } from "../../adapters/discord/options.ts";
import type { LimitSettings } from "../../test/simulators/discord/limits.ts";
import { createDiscord, type Discord } from "../../test/simulators/discord/simulator.ts";
import { type Message, shown } from "../../test/simulators/discord/world.ts";
import { createDiscordAdapterFor } from "../../test/support/fault-loop/discord-world.ts";
import { startService } from "../../test/support/fault-loop/service.ts";
import { lookFor } from "../../test/support/fault-loop/world.ts";
import { type Figures, type Outcome, toFigures } from "../../test/support/pacing/measure.ts";
import { createRandom, toRoundTrip } from "../../test/support/pacing/random.ts";
import { type Arrivals, TOKEN_UNITS } from "../../test/support/pacing/scenarios.ts";
import { DISCORD_TRIP_MS } from "../../test/support/pacing/trials.ts";
import { findTakenBack } from "../../test/support/taken-back.ts";
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
  /** Replies whose text on the platform is not the upstream's. */
  wrong: number;
  /** The texts that people could read and then no longer. */
  takenBack: string[];
  /** Rules of the platform that were broken, those among them. */
  violations: string[];
}

/** Has questions asked at once in one channel of a simulated server in real time, and answers them with the whole service. */
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
  const service = await startService({
    world: { origin, startAdapter: (parts) => createDiscordAdapterFor(discord, threads, parts) },
    upstream,
    disk: undefined,
    onAccepted: () => {
      waiting -= 1;
      if (waiting === 0) accepted.resolve();
    },
    isDoubled: () => false,
    // discord.js reads a channel for one question after another, and the answers would not begin together as in virtual time.
    contextMessages: 0,
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

/** The bot's replies, in order: in the channel, each message a reply to the one before, or in a thread for it. */
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
    // A message begins behind the white space in which the one before it ended.
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
