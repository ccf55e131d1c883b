import {
  type APIInteraction,
  type Client,
  Events,
  GatewayDispatchEvents,
  type GatewayMessageDeleteBulkDispatchData,
  type GatewayMessageDeleteDispatchData,
  InteractionContextType,
} from "discord.js";
import type { Api } from "./api/client.ts";
import type { Files } from "./api/files.ts";
import { createRooms } from "./api/rooms.ts";
import { applicationIdOf } from "./ids.ts";
import type { Acknowledge } from "./interactions/acknowledge.ts";
import { registerCommands, toDefinitions } from "./interactions/commands.ts";
import { placeOf } from "./interactions/events.ts";
import { createInteractions } from "./interactions/interactions.ts";
import { createActivity } from "./listen/activity.ts";
import { catchUp } from "./listen/catch-up.ts";
import { createCatchUpGate } from "./listen/catch-up-gate.ts";
import type { Shard } from "./listen/client.ts";
import type { Delivery } from "./listen/delivery.ts";
import { type DirectChannels, isDirect } from "./listen/direct-channels.ts";
import { createFindMessage } from "./listen/earlier.ts";
import type { FindMember } from "./listen/find-author.ts";
import { withoutNulls } from "./listen/inbound.ts";
import { type FollowOptions, followSession } from "./listen/last-session.ts";
import { createListener } from "./listen/listener.ts";
import { createTellNotAllowed } from "./listen/permission-notice.ts";
import { createPlaceQuestion } from "./listen/threads.ts";
import type { Message } from "./listen/wording.ts";
import type { DiscordAdapterOptions } from "./options.ts";
import type { FinalMessages } from "./write/final-message.ts";
import type { SeenInteractionMessages } from "./write/seen-messages.ts";

/** The gateway's events that are listened to, with their data. */
interface GatewayEvents {
  [GatewayDispatchEvents.MessageCreate]: Message;
  [GatewayDispatchEvents.MessageUpdate]: Message;
  [GatewayDispatchEvents.MessageDelete]: GatewayMessageDeleteDispatchData;
  [GatewayDispatchEvents.MessageDeleteBulk]: GatewayMessageDeleteBulkDispatchData;
  [GatewayDispatchEvents.InteractionCreate]: APIInteraction;
}

export interface IncomingParts {
  api: Api;
  files: Files;
  directChannels: DirectChannels;
  acknowledge: Acknowledge;
  acknowledgements: Map<string, Promise<unknown>>;
  findMember: FindMember;
  seenMessages: Pick<SeenInteractionMessages, "see">;
  finalMessages: FinalMessages;
  /** Undefined while nothing is taken. */
  delivery(): Delivery | undefined;
  closing: AbortSignal;
}

/**
 * Attaches the listeners to a client. Returns its channels and the bot's own id. Listens to the gateway's raw events,
 * because the library leaves its own message events out when a call fetched the message first, and for a direct message
 * that does not say that it is one.
 */
export function attachListeners(
  client: Client,
  { shard, isInherited, ...parts }: IncomingParts & Pick<FollowOptions, "isInherited"> & { shard: Shard },
  options: DiscordAdapterOptions,
) {
  const { log, now, threads: mode, lastSession } = options;
  const { api, files, directChannels, delivery } = parts;
  const rooms = createRooms(client);
  const botId = () => client.user?.id;
  const activity = createActivity(now);
  const enqueue: Delivery["enqueue"] = async (...job) => (await delivery()?.enqueue(...job)) ?? false;
  const place = createPlaceQuestion({ mode, api, activity, rooms, log });
  const queue = { enqueue };
  const gate = createCatchUpGate();
  const listener = createListener({
    rooms,
    files,
    delivery: queue,
    activity,
    place,
    tellNotAllowed: createTellNotAllowed(api, rooms, now),
    findMember: parts.findMember,
    findMessage: createFindMessage(api, parts.closing),
    now,
    isListening: options.isListening,
    botId,
  });
  // Direct messages all come in through the first shard.
  const isFollowed = lastSession !== undefined && shard.id === 0;
  const missed = isFollowed ? followSession(client, { ...options, store: lastSession, isInherited }) : [];
  async function listDirects(): Promise<readonly string[]> {
    const found = await missed;
    for (const channelId of found) directChannels.note(channelId);
    return [...new Set([...found, ...(await directChannels.list())])];
  }
  const onInteraction = createInteractions({ ...options, ...parts, rooms, delivery: queue });

  function on<E extends keyof GatewayEvents>(event: E, listen: (data: GatewayEvents[E]) => void): void {
    client.ws.on(event, (data: unknown) => {
      if (delivery() !== undefined) attempt(event, () => listen(toPlaced(data as GatewayEvents[E])));
    });
  }
  /** Names the server of a known channel where the packet does not. */
  function toPlaced<T extends GatewayEvents[keyof GatewayEvents]>(data: T): T {
    const packet = withoutNulls(data);
    const guildId = packet.guild_id ?? rooms.guildIdOf(packet.channel_id ?? "");
    return guildId === undefined ? packet : { ...packet, guild_id: guildId };
  }
  function attempt(event: string, read: () => void): void {
    try {
      read();
    } catch (error) {
      log.error({ err: error, event }, "A packet from Discord could not be read.");
    }
  }
  /** Listens in the order of each channel: after the messages that were missed there. */
  function onInOrder<E extends Exclude<keyof GatewayEvents, GatewayDispatchEvents.InteractionCreate>>(
    event: E,
    listen: (data: GatewayEvents[E]) => void,
  ): void {
    on(event, (data) => {
      const channel = { id: data.channel_id, isDirect: data.guild_id === undefined };
      gate.take(channel, () => attempt(event, () => listen(data)));
    });
  }
  function onMessage(message: Message): void {
    if (message.author.id === client.user?.id) parts.seenMessages.see(message);
    if (isDirect(message)) directChannels.note(message.channel_id);
    listener.onMessage(message);
  }

  client.ws.on(GatewayDispatchEvents.Ready, gate.begin);
  onInOrder(GatewayDispatchEvents.MessageCreate, onMessage);
  onInOrder(GatewayDispatchEvents.MessageUpdate, listener.onEdit);
  onInOrder(GatewayDispatchEvents.MessageDelete, listener.onDelete);
  onInOrder(GatewayDispatchEvents.MessageDeleteBulk, ({ ids, ...place }) => {
    for (const id of ids) listener.onDelete({ ...place, id });
  });
  on(GatewayDispatchEvents.InteractionCreate, (interaction) => {
    // A conversation between other people is left out: the bot cannot read what it missed there.
    const isDirect =
      interaction.guild_id === undefined && interaction.context !== InteractionContextType.PrivateChannel;
    if (isDirect) directChannels.note(placeOf(interaction).channelId);
    onInteraction(interaction).catch((error: unknown) => {
      log.error({ err: error }, "A command or a button could not be dealt with.");
    });
  });
  client.on(Events.ShardReady, () => {
    const { onMessage } = listener;
    const deps = {
      api,
      rooms,
      shard: shard.id,
      directChannels: listDirects,
      onMessage,
      gate,
      botId,
      log,
      now,
    };
    void catchUp(deps, parts.closing);
    // One of several processes is enough.
    if (shard.id === 0) void register(client, parts, options);
  });
  return { rooms, botId };
}

/** Registers the commands. A failure is only logged: without commands the bot still answers. */
async function register(
  client: Client,
  { api, closing }: IncomingParts,
  options: DiscordAdapterOptions,
): Promise<void> {
  const { token, commands, imagine, guildId, log } = options;
  const applicationId = client.application?.id ?? applicationIdOf(token);
  if (applicationId === undefined) return;
  try {
    await registerCommands(toDefinitions(commands, imagine), { api, applicationId, guildId, log }, closing);
  } catch (error) {
    if (!closing.aborted)
      log.error({ err: error }, "The commands could not be registered with Discord; it knows those of before.");
  }
}
