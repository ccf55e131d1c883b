import type { Fault } from "../discord-sim/faults.ts";
import type { Discord } from "../discord-sim/simulator.ts";
import type { Violation } from "../discord-sim/violations.ts";
import { type Channel, type Guild, type Message, type Payload, shown, type User } from "../discord-sim/world.ts";
import type { Random } from "../pacing/random.ts";
import { withoutSteps } from "../support/taken-back.ts";
import { type Break, type Place, passing, type Shown } from "./place.ts";

const POST = "POST /channels/:channel/messages";
const EDIT = "PATCH /channels/:channel/messages/:message";

export interface DiscordPlaceOptions {
  place: "channel" | "direct" | "thread";
  guild: Guild;
  /** The first two people write here. A direct conversation belongs to the first. */
  people: readonly User[];
}

export function openDiscordPlace(discord: Discord, { place, guild, people }: DiscordPlaceOptions): Place {
  const ada = people[0] as User;
  // Only one person can write in a direct conversation.
  const speaker = (person: number) => people[place === "direct" ? 0 : person] ?? ada;
  const questions = new Map<string, Message>();
  const general = discord.addChannel(guild, "general");
  const channel = place === "direct" ? discord.openDm(ada) : toRoom(discord, general, ada, place);
  const find = (id: string) => allAnswers(discord).find((message) => toId(message) === id);

  /** Returns this channel and the threads that were opened in it. */
  function rooms(): Channel[] {
    return discord.places().filter(({ id, parentId }) => id === channel.id || parentId === channel.id);
  }

  const parentId = place === "thread" ? channel.parentId : undefined;

  return {
    lasting: {
      author: { id: ada.id, name: ada.name },
      reply: {
        platform: "discord",
        channelId: parentId ?? channel.id,
        ...(parentId !== undefined && { threadId: channel.id }),
        ...(place === "direct" ? { isDirect: true as const } : { workspaceId: guild.id }),
      },
      conversationId: `discord:${channel.id}`,
    },
    ask(name, person) {
      const message = discord.people.say(channel, speaker(person), name, { mentionBot: place !== "direct" });
      questions.set(name, message);
      return { name, id: toId(message), person };
    },
    edit({ name }, text) {
      const message = questions.get(name);
      const mention = place === "direct" ? "" : `<@${discord.bot.id}> `;
      if (message !== undefined) discord.people.edit(message, `${mention}${text}`);
    },
    remove({ name }) {
      const message = questions.get(name);
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

/** Faults that stop the bot from finishing an answer. */
export const DISTURBING: ReadonlySet<string> = new Set(["blind", "mute", "gone"]);

export const TROUBLES: Readonly<Record<string, (victim: Victim) => (() => void) | undefined>> = {
  // After a 429, Discord has carried out no part of the call.
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
  return message.ephemeralFor === undefined && !shown(message).content.startsWith("I can't answer you in ");
}

function toRoom(discord: Discord, general: Channel, ada: User, place: "channel" | "thread"): Channel {
  return place === "channel" ? general : discord.people.openThread(general, ada, "thread");
}

function toBreak({ kind, sentence, atMs }: Violation, messages: readonly Message[]): Break {
  const [, id] = /message (\d+)/.exec(sentence) ?? [];
  const message = messages.find((one) => one.id === id);
  return { kind, sentence, atMs, ...(message && { messageId: toId(message) }) };
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
  // A growing message has a Stop button.
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
