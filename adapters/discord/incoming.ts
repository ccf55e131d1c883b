import {
  type APIInteraction,
  GatewayDispatchEvents,
  type GatewayMessageDeleteBulkDispatchData,
  type GatewayMessageDeleteDispatchData,
  InteractionContextType,
} from "discord.js";
import type { Acknowledge } from "./act/acknowledgement.ts";
import { createInteractions } from "./act/dispatch.ts";
import { placeOf } from "./act/user-action.ts";
import type { Api } from "./api/client.ts";
import type { Files } from "./api/files.ts";
import { catchUp, createCatchUpGate } from "./hear/catch-up.ts";
import type { Delivery } from "./hear/delivery.ts";
import { type DirectChannels, isDirect } from "./hear/direct-channels.ts";
import { createFindMessage } from "./hear/earlier.ts";
import { withoutNulls } from "./hear/inbound.ts";
import { type FollowOptions, followSession } from "./hear/last-session.ts";
import { createListener } from "./hear/listener.ts";
import type { FindMember } from "./hear/people.ts";
import { createActivity, createPlaceQuestion } from "./hear/threads.ts";
import type { GatewayClient, Shard } from "./hear/transport.ts";
import type { Message } from "./hear/wording.ts";
import { applicationIdOf } from "./ids.ts";
import { registerCommands, toDefinitions } from "./install/slash-commands.ts";
import type { DiscordAdapterOptions } from "./options.ts";
import type { SeenInteractionMessages } from "./write/interaction-writer.ts";
import { createTellNotAllowed } from "./write/notice.ts";
import type { FinalMessages } from "./write/private-ending.ts";

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
  /** Undefined while the process accepts no events. */
  delivery(): Delivery | undefined;
  closing: AbortSignal;
}

export function attachListeners(
  client: GatewayClient,
  { shard, isInherited, ...parts }: IncomingParts & Pick<FollowOptions, "isInherited"> & { shard: Shard },
  options: DiscordAdapterOptions,
) {
  const { log, now, threads: mode, lastSession } = options;
  const { api, files, directChannels, delivery } = parts;
  const { rooms, botId } = client;
  const activity = createActivity(now);
  const queue: Pick<Delivery, "enqueue"> = { enqueue: async (...job) => there(delivery()).enqueue(...job) };
  const place = createPlaceQuestion({ mode, api, activity, rooms, log });
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
  // Only the first shard receives direct messages.
  const isFollowed = lastSession !== undefined && shard.id === 0;
  const missed = isFollowed ? followSession(client, { ...options, store: lastSession, isInherited }) : [];
  async function listDirects(): Promise<readonly string[]> {
    const found = await missed;
    for (const channelId of found) directChannels.note(channelId);
    return [...new Set([...found, ...(await directChannels.list())])];
  }
  const onInteraction = createInteractions({ ...options, ...parts, rooms, delivery: queue });

  function on<E extends keyof GatewayEvents>(event: E, listen: (data: GatewayEvents[E]) => void): void {
    client.onEvent(({ t: type, d: data }) => {
      if (type === event && delivery() !== undefined) listen(toPlaced(rooms, data as GatewayEvents[E]));
    });
  }
  function attempt(event: string, read: () => void): void {
    try {
      read();
    } catch (error) {
      log.error({ err: error, event }, "Could not handle a packet from Discord.");
    }
  }
  /** Handles the events of each channel in order, after the channel's missed messages. */
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
    if (message.author.id === botId()) parts.seenMessages.see(message);
    listener.onMessage(message);
  }

  client.onEvent(({ t: type, d: data }) => {
    if (type !== GatewayDispatchEvents.MessageCreate) return;
    // Runs even during a shutdown, because the next process catches up only in direct conversations that are stored.
    const message = toPlaced(rooms, data);
    if (isDirect(message)) directChannels.note(message.channel_id);
  });
  client.onEvent(({ t: type }) => {
    if (type === GatewayDispatchEvents.Ready) gate.begin();
  });
  onInOrder(GatewayDispatchEvents.MessageCreate, onMessage);
  onInOrder(GatewayDispatchEvents.MessageUpdate, listener.onEdit);
  onInOrder(GatewayDispatchEvents.MessageDelete, listener.onDelete);
  onInOrder(GatewayDispatchEvents.MessageDeleteBulk, ({ ids, ...place }) => {
    for (const id of ids) listener.onDelete({ ...place, id });
  });
  on(GatewayDispatchEvents.InteractionCreate, (interaction) => {
    // Skips a conversation between other users, because the bot cannot read missed messages there.
    const isDirect =
      interaction.guild_id === undefined && interaction.context !== InteractionContextType.PrivateChannel;
    if (isDirect) directChannels.note(placeOf(interaction).channelId);
    onInteraction(interaction).catch((error: unknown) => {
      log.error({ err: error }, "Could not handle a command or a button.");
    });
  });
  client.onReady(() => {
    const { onMessage } = listener;
    const deps = {
      api,
      rooms,
      hasDirects: shard.id === 0,
      directChannels: listDirects,
      onMessage,
      gate,
      botId,
      log,
      now,
    };
    void catchUp(deps, parts.closing);
    if (shard.id === 0) void register(client, parts, options);
  });
  return { rooms, botId };
}

/** Adds the server's id to a packet that lacks it, if the channel is known. */
function toPlaced<T extends GatewayEvents[keyof GatewayEvents]>(rooms: GatewayClient["rooms"], data: T): T {
  const packet = withoutNulls(data);
  const guildId = packet.guild_id ?? rooms.guildIdOf(packet.channel_id ?? "");
  return guildId === undefined ? packet : { ...packet, guild_id: guildId };
}

function there(delivery: Delivery | undefined): Delivery {
  if (delivery === undefined) throw new Error("This process is shutting down and accepts no events.");
  return delivery;
}

/** Registers the commands. Only logs a failure, because the bot still answers without commands. */
async function register(
  client: GatewayClient,
  { api, closing }: IncomingParts,
  options: DiscordAdapterOptions,
): Promise<void> {
  const { token, commands, imagine, guildId, log } = options;
  const applicationId = client.applicationId() ?? applicationIdOf(token);
  if (applicationId === undefined) return;
  try {
    await registerCommands(toDefinitions(commands, imagine), { api, applicationId, guildId, log }, closing);
  } catch (error) {
    if (!closing.aborted) log.error({ err: error }, "Could not register the commands with Discord; the old ones stay.");
  }
}
