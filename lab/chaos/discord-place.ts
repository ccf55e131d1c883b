import { createDiscordAdapter } from "../../../adapters/discord/index.ts";
import type { ThreadMode } from "../../../adapters/discord/options.ts";
import { toDirectChannelStore } from "../../../src/platforms.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import type { Fault } from "../../simulators/discord/faults.ts";
import { hasPermission } from "../../simulators/discord/permissions.ts";
import { createDiscord, type Discord } from "../../simulators/discord/simulator.ts";
import type { Violation } from "../../simulators/discord/violations.ts";
import {
  type Channel,
  type Guild,
  type Message,
  type Payload,
  shown,
  type User,
} from "../../simulators/discord/world.ts";
import { silent } from "../log.ts";
import type { Random } from "../pacing/random.ts";
import { withoutSteps } from "../taken-back.ts";
import { type AdapterParts, type Break, type Place, passing, type Shown, type World } from "./world.ts";

const POST = "POST /channels/:channel/messages";
const EDIT = "PATCH /channels/:channel/messages/:message";

/** The people who speak where nothing goes wrong. */
const ASIDE = 2;

export interface DiscordWorldOptions {
  threads: ThreadMode;
  place: "channel" | "direct" | "thread";
}

/** A server with one channel in it, or a direct conversation. */
export async function openDiscordWorld({ threads, place }: DiscordWorldOptions): Promise<World> {
  const discord = await createDiscord();
  const guild = discord.addGuild();
  const people = ["Ada", "Ben", "Eve"].map((name) => discord.addUser(name, guild));
  const asked = new Map<string, Message>();
  const room = openDiscordPlace(discord, { place, guild, people, asked });
  const eve = people[ASIDE] as User;
  const aside = discord.openDm(eve);

  return {
    ...room,
    origin: new URL(discord.apiUrl).origin,
    startAdapter: (parts) => createDiscordAdapterFor(discord, threads, parts),
    // Words said while nobody listens are read later, or told when the session goes on.
    hasListener: () => true,
    askAside(name) {
      const message = discord.people.say(aside, eve, name);
      return { name, id: toId(message), person: ASIDE, isTold: true };
    },
    shown: () => allAnswers(discord).filter(isAnswer).map(toShown),
    troubles: Object.keys(TROUBLES),
    disturbing: DISTURBING,
    breaks: () => discordBreaks(discord),
    close: discord.close,
  };
}

export interface DiscordPlaceOptions {
  place: "channel" | "direct" | "thread";
  guild: Guild;
  /** The first two write here; a direct conversation is the first one's. */
  people: readonly User[];
  /** Filled with what people have asked, by its name. */
  asked?: Map<string, Message>;
}

/** A channel, a thread or a direct conversation. */
export function openDiscordPlace(
  discord: Discord,
  { place, guild, people, asked = new Map() }: DiscordPlaceOptions,
): Place {
  const ada = people[0] as User;
  // Direct conversations are those of one person.
  const speaker = (person: number) => people[place === "direct" && person !== ASIDE ? 0 : person] ?? ada;
  const general = discord.addChannel(guild, "general");
  const channel = place === "direct" ? discord.openDm(ada) : toRoom(discord, general, ada, place);
  const find = (id: string) => allAnswers(discord).find((message) => toId(message) === id);

  /** Nobody tells the bot what it may not see; where it may not write it says so directly, to whoever asks. */
  function isTold(): boolean {
    const denied = channel.overwrites.get(discord.bot.id)?.deny ?? 0n;
    const isThere = channel.kind === "dm" || discord.places().includes(channel);
    return isThere && !hasPermission(denied, "ViewChannel") && !hasPermission(denied, "SendMessages");
  }

  /** Threads that were opened from here are part of it. */
  function rooms(): Channel[] {
    return discord.places().filter(({ id, parentId }) => id === channel.id || parentId === channel.id);
  }

  return {
    ask(name, person) {
      const message = discord.people.say(channel, speaker(person), name, { mentionBot: place !== "direct" });
      asked.set(name, message);
      return { name, id: toId(message), person, isTold: isTold() };
    },
    edit({ name }, text) {
      const message = asked.get(name);
      const mention = place === "direct" ? "" : `<@${discord.bot.id}> `;
      if (message !== undefined) discord.people.edit(message, `${mention}${text}`);
    },
    remove({ name }) {
      const message = asked.get(name);
      if (message !== undefined) discord.people.delete(message);
    },
    shown: () =>
      rooms().flatMap((room) =>
        discord
          .messages(room)
          .filter((one) => isOwn(one, discord) && isAnswer(one))
          .map(toShown),
      ),
    removeShown(id) {
      const message = find(id);
      if (message !== undefined) discord.people.delete(message);
    },
    press(id, label, person) {
      const message = find(id);
      if (message !== undefined) discord.people.press(message, speaker(person), label);
    },
    inflict: (trouble, random) => TROUBLES[trouble]?.({ discord, channel, random }),
  };
}

export function allAnswers(discord: Discord): Message[] {
  return discord.places().flatMap((one) => discord.messages(one).filter((message) => isOwn(message, discord)));
}

function isOwn({ author }: Message, { bot }: Discord): boolean {
  return author === bot;
}

export function discordBreaks(discord: Discord): Break[] {
  return discord.violations.map((one) => toBreak(one, allAnswers(discord)));
}

/** The adapter as the service makes it, on a simulated Discord. */
export function createDiscordAdapterFor(
  { token }: Pick<Discord, "token">,
  threads: ThreadMode,
  { origin, engine, stores }: AdapterParts,
): Adapter {
  return createDiscordAdapter({
    token,
    apiUrl: `${origin}/api`,
    threads,
    commands: engine.commands,
    listModels: engine.listModels,
    directChannels: toDirectChannelStore(stores),
    log: silent,
    now: Date.now,
    onFatal: () => {},
  });
}

interface Victim {
  discord: Discord;
  channel: Channel;
  random: Random;
}

function failing(fault: (random: Random) => Omit<Fault, "when">): (victim: Victim) => undefined {
  return passing(({ discord, random }) => {
    const when = random.pick(["before", "after"] as const);
    const skip = Math.floor(random.between(0, 4));
    discord.faults.failNext(random.pick([POST, EDIT, EDIT]), { when, skip, ...fault(random) });
  });
}

function denying(permissions: Parameters<Discord["overwrite"]>[2]["deny"]) {
  return ({ discord, channel }: Victim): (() => void) | undefined => {
    if (channel.kind !== "text" || permissions === undefined) return undefined;
    discord.overwrite(channel, discord.bot.id, { deny: permissions });
    return () => discord.overwrite(channel, discord.bot.id, {});
  };
}

/** After these an answer cannot be written to its end. */
const DISTURBING: ReadonlySet<string> = new Set(["blind", "mute", "gone"]);

/** The faults of Discord. */
export const TROUBLES: Readonly<Record<string, (victim: Victim) => (() => void) | undefined>> = {
  // A limit is told before anything is carried out.
  "429": passing(({ discord, random }) => {
    const retryAfterMs = Math.round(random.between(200, 2_000));
    const [scope, skip] = [random.pick(["user", "shared"] as const), Math.floor(random.between(0, 4))];
    discord.faults.failNext(random.pick([POST, EDIT, EDIT]), { status: 429, retryAfterMs, scope, skip });
  }),
  "500": failing(() => ({ status: 500 })),
  "502": failing((random) => ({ status: 502, times: random.pick([1, 2, 3]) })),
  reset: failing((random) => ({ status: "reset", times: random.pick([1, 2]) })),
  slow: passing(({ discord, random }) => {
    discord.faults.slow(random.pick([POST, EDIT]), Math.round(random.between(200, 1_200)), { times: 3 });
  }),
  drop: passing(({ discord }) => discord.gateway.drop()),
  reconnect: passing(({ discord }) => discord.gateway.reconnect()),
  resumable: passing(({ discord }) => discord.gateway.invalidate(true)),
  invalid: passing(({ discord }) => discord.gateway.invalidate(false)),
  closed: passing(({ discord, random }) => discord.gateway.closeWith(random.pick([4000, 4008, 4009]))),
  blind: denying(["ViewChannel"]),
  mute: denying(["SendMessages", "SendMessagesInThreads"]),
  gone: passing(({ discord, channel }) => {
    if (channel.kind !== "dm") discord.removeChannel(channel);
  }),
};

export function isAnswer(message: Message): boolean {
  return message.ephemeralFor === undefined && !shown(message).content.startsWith("I cannot answer you in ");
}

function toRoom(discord: Discord, general: Channel, ada: User, place: "channel" | "thread"): Channel {
  return place === "channel" ? general : discord.people.openThread(general, ada, "thread");
}

function toBreak({ kind, sentence, atMs }: Violation, messages: readonly Message[]): Break {
  const [, id] = /message (\d+)/.exec(sentence) ?? [];
  const message = messages.find((one) => one.id === id);
  return { kind, sentence, atMs, ...(message && { messageId: toId(message), isNotice: !isAnswer(message) }) };
}

function toId({ channelId, id }: Message): string {
  return `discord:${channelId}:${id}`;
}

export function toShown(message: Message): Shown {
  const { content, components } = shown(message);
  const buttons = flatten(components).map((button) => ({
    label: textOf(button["label"]),
    payload: textOf(button["custom_id"]),
  }));
  // A message that still grows is one that can be stopped.
  return {
    id: toId(message),
    text: withoutSteps(content),
    states: message.states.map((state) => withoutSteps(state.content)),
    statesAtMs: message.states.map(({ atMs }) => atMs),
    buttons,
    isGrowing: buttons.some(({ label }) => label === "Stop"),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function flatten(components: readonly Payload[]): Payload[] {
  return components.flatMap((component) =>
    Array.isArray(component["components"]) ? flatten(component["components"] as Payload[]) : [component],
  );
}
