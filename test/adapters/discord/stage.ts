import { onTestFinished } from "vitest";
import { createDiscordAdapter } from "../../../adapters/discord/adapter.ts";
import type { Rooms } from "../../../adapters/discord/api/rooms.ts";
import { createOwnShares } from "../../../adapters/discord/hear/sessions.ts";
import type { DiscordAdapterOptions, LastSession, LastSessionStore } from "../../../adapters/discord/options.ts";
import { type Channel, type Guild, type Message, shown, type User } from "../../../lab/discord-sim/world.ts";
import { silent } from "../../../lab/support/log.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import type { Accept, InboundEvent, MessageEvent } from "../../../src/port/events.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import type { Draft } from "../../../src/port/sink.ts";
import { type Discord, type DiscordOptions, startDiscord } from "../../support/discord.ts";

export interface StageOptions extends Partial<DiscordAdapterOptions> {
  discord?: Discord;
  simulator?: DiscordOptions;
  accept?: Accept;
  /** False if the adapter only writes. */
  listens?: boolean;
}

export interface Stage {
  discord: Discord;
  guild: Guild;
  adapter: Adapter;
  channel: Channel;
  ada: User;
  bob: User;
  events: InboundEvent[];
  reasons: string[];
  event(index: number): Promise<InboundEvent>;
  message(index: number): Promise<MessageEvent>;
  /** Answers a question that the bot has received. Resolves to the answer. */
  answer(index: number, markdown: string, more?: Partial<Draft>): Promise<Message>;
  /** Resolves when the bot has received the channel's earlier events. To know that, a user mentions the bot there. */
  heard(channel: Channel, speaker: User): Promise<void>;
}

/** The answers of a process that knows no channels. */
export const NO_ROOMS: Rooms = {
  kindOf: () => "channel",
  botRoleId: () => undefined,
  guildIdOf: () => undefined,
  parentOf: () => undefined,
  nameOfChannel: () => undefined,
  nameOfRole: () => undefined,
  guildOfRole: () => undefined,
  categoryOf: () => undefined,
  mayWrite: () => true,
  mayReadHistory: () => true,
  mayReact: () => true,
  maxFileBytesIn: () => undefined,
  mayOpenThread: () => false,
  mayManage: () => false,
  recent: () => [],
};

const signal = new AbortController().signal;

/** A server with two users and the adapter, which is closed after the test. */
export async function startStage(options: StageOptions = {}): Promise<Stage> {
  const { discord = await startDiscord(options.simulator), accept, listens = true, ...rest } = options;
  const guild = discord.addGuild();
  const channel = discord.addChannel(guild, "general");
  const [ada, bob] = [discord.addUser("ada", guild), discord.addUser("bob", guild)];
  const started = await startAdapter(discord, { ...rest, ...(accept && { accept }), listens });
  return { discord, guild, channel, ada, bob, ...started };
}

export async function startAdapter(
  discord: Discord,
  { accept = async () => {}, listens = true, ...options }: Omit<StageOptions, "discord" | "simulator"> = {},
): Promise<Pick<Stage, "adapter" | "events" | "reasons" | "event" | "message" | "answer" | "heard">> {
  const events: InboundEvent[] = [];
  const reasons: string[] = [];
  const watchers = new Set<() => void>();
  const adapter = createDiscordAdapter({
    token: discord.token,
    apiUrl: discord.apiUrl,
    threads: "off",
    commands: [],
    listModels: async () => [],
    log: silent,
    onFatal: (reason) => reasons.push(reason),
    now: discord.clock.now,
    // Sessions can start at once.
    shares: { ...createOwnShares(), takeTurn: async () => true },
    ...options,
  });
  onTestFinished(() => adapter.close());
  async function taken(event: InboundEvent): Promise<void> {
    await accept(event);
    events.push(event);
    for (const wake of watchers) wake();
  }
  if (listens) await adapter.listen(taken);

  async function event(index: number): Promise<InboundEvent> {
    for (;;) {
      const found = events[index];
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => watchers.add(resolve));
    }
  }

  async function message(index: number): Promise<MessageEvent> {
    const found = await event(index);
    if (found.kind !== "message") throw new Error(`Event ${index} is no message but ${found.kind}.`);
    return found;
  }

  return {
    adapter,
    events,
    reasons,
    event,
    message,
    async answer(index, markdown, more) {
      const { reply } = await message(index);
      const { id } = await adapter.sink(reply, NO_RIGHT).post(draft(markdown, more), `answer:${index}`, signal);
      const place = discord.places().find((one) => id.includes(one.id));
      return botMessage(discord, place, (one) => id.endsWith(one.id));
    },
    async heard(channel, speaker) {
      const said = discord.people.say(channel, speaker, "heard?", { mentionBot: true });
      const find = () => events.findIndex((one) => one.kind === "message" && one.messageId.endsWith(said.id));
      while (find() === -1) await new Promise<void>((resolve) => watchers.add(resolve));
      events.splice(find(), 1);
    },
  };
}

/** A store for the last session. Several processes can use it one after another. */
export function createSessionStore(): LastSessionStore & { last: LastSession | undefined } {
  return {
    last: undefined,
    async read() {
      return this.last;
    },
    async write(session) {
      this.last = session;
    },
  };
}

export function draft(markdown: string, more: Partial<Draft> = {}): Draft {
  return { markdown, buttons: [], streaming: false, ...more };
}

export function botTexts(discord: Discord, channel: Channel): string[] {
  return botMessages(discord, channel).map((message) => shown(message).content);
}

export function botMessages(discord: Discord, channel: Channel): Message[] {
  return discord.messages(channel).filter(({ author }) => author === discord.bot);
}

/** The bot's first message in a channel. */
export function botMessage(
  discord: Discord,
  channel: Channel | undefined,
  isMeant: (message: Message) => boolean = () => true,
): Message {
  const found = channel && botMessages(discord, channel).find(isMeant);
  if (found === undefined) throw new Error("The bot has no such message there.");
  return found;
}

export { signal };
