import { BoundedMap } from "../../src/concurrency/bounded-map.ts";
import { waitAtMost } from "../../src/concurrency/deadlines.ts";
import { once } from "../../src/concurrency/once.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { Accept } from "../../src/port/events.ts";
import { withRight } from "../../src/port/right.ts";
import { createAcknowledge, toDeferral } from "./act/acknowledgement.ts";
import { createApi } from "./api/client.ts";
import { createFiles } from "./api/files.ts";
import { createNamePlace } from "./api/names.ts";
import { createOptionalCalls } from "./api/optional-calls.ts";
import { inviteLink } from "./api/permissions.ts";
import type { Rooms } from "./api/rooms.ts";
import { createDelivery, type Delivery } from "./hear/delivery.ts";
import { createDirectChannels, createMemoryStore } from "./hear/direct-channels.ts";
import { createReadsEarlier, type EarlierDeps } from "./hear/earlier.ts";
import {
  createDirectRoles,
  createFindAuthor,
  createFindMember,
  createReadMember,
  withDirectRoles,
} from "./hear/people.ts";
import { createReadsRecent } from "./hear/recent.ts";
import { createSearch } from "./hear/search.ts";
import { createSessions } from "./hear/sessions.ts";
import { type Shard, TOKEN_REFUSED } from "./hear/transport.ts";
import { applicationIdOf, PLATFORM, shardOf } from "./ids.ts";
import { attachListeners, type IncomingParts } from "./incoming.ts";
import type { DiscordAdapterOptions } from "./options.ts";
import type { InteractionTokenDeps } from "./write/interaction-token.ts";
import { createSeenInteractionMessages } from "./write/interaction-writer.ts";
import { createNotifyPrivately } from "./write/notice.ts";
import { createDiscordPace } from "./write/pace.ts";
import { createFinalMessages } from "./write/private-ending.ts";
import { createSink, type SinkDeps } from "./write/sink.ts";
import { createTypings } from "./write/status.ts";

const SETTLE_MS = 1_000;
const MAX_ACKNOWLEDGEMENTS = 1_000;

interface ActiveShard {
  shard: Shard;
  rooms: Rooms;
  botId(): string | undefined;
}

/** Discord through discord.js: mentions, threads, direct messages, commands and buttons. */
export function createDiscordAdapter(options: DiscordAdapterOptions): Adapter {
  const { token, apiUrl, log, now, processes } = options;
  const fatal = once(options.onFatal);
  const api = createApi({ token, apiUrl, now, processes, onUnauthorized: () => fatal(TOKEN_REFUSED) });
  const files = createFiles({ api, now, ...(apiUrl !== undefined && { apiUrl }) });
  const acknowledgements = new BoundedMap<string, Promise<unknown>>(MAX_ACKNOWLEDGEMENTS);
  const acknowledge = createAcknowledge(api, log);
  const tokenDeps: InteractionTokenDeps = {
    api,
    acknowledgements,
    acknowledge: async (to) => (await acknowledge(to, toDeferral(to))) !== "late",
    now,
  };
  const seenMessages = createSeenInteractionMessages();
  const pace = createDiscordPace(processes);
  const typingIn = createTypings(api);
  /** The shards whose events this process receives, by number, with their channels and the bot's id. */
  const activeShards = new Map<number, ActiveShard>();
  const reactions = createOptionalCalls(api, { firstCalls: 1 });
  const closing = new AbortController();
  const directChannels = createDirectChannels(options.directChannels ?? createMemoryStore(), closing.signal);
  const finalMessages = createFinalMessages(api, now, closing.signal);
  const readMember = createReadMember(api);
  const findMember = createFindMember(readMember, { closing: closing.signal, now });
  let delivery: Delivery | undefined;
  const parts: IncomingParts = {
    api,
    files,
    directChannels,
    acknowledge,
    findMember,
    acknowledgements,
    seenMessages,
    finalMessages,
    delivery: () => delivery,
    closing: closing.signal,
  };
  const sessions = createSessions({
    ...options,
    api,
    onFatal: fatal,
    attach(client, shard, isInherited) {
      activeShards.set(shard.id, { shard, ...attachListeners(client, { ...parts, shard, isInherited }, options) });
    },
    detach: (shard) => void activeShards.delete(shard),
  });

  const knownOf = (guildId: string | undefined) =>
    activeShards.values().find(({ shard }) => shardOf(guildId, shard.count) === shard.id);

  const readsDeps: EarlierDeps = {
    api,
    files,
    knownOf: ({ workspaceId }) => describeShard(knownOf(workspaceId), token),
  };

  const guildOfRole = (id: string) => findGuildOfRole(activeShards.values(), id);
  const rolesOf = createDirectRoles({ namedGroups: options.namedGroups, guildOfRole, findMember, now });

  return {
    platform: PLATFORM,
    async listen(accept: Accept, notifyDelayed) {
      delivery = createDelivery(withDirectRoles(accept, rolesOf), log, notifyDelayed);
      await sessions.open();
      const applicationId = applicationIdOf(token);
      if (applicationId !== undefined) log.info(`To add the bot to a server, open ${inviteLink(applicationId)}`);
    },
    sink: (address, right) =>
      createSink(address, {
        ...tokenDeps,
        api: withRight(api, right),
        isAlone: options.shares === undefined,
        files,
        seenMessages,
        finalMessages,
        pace,
        typingIn,
        rooms: toKnownRooms(activeShards),
        reactions,
      }),
    notifyPrivately: createNotifyPrivately({ ...tokenDeps, finalMessages }),
    findAuthor: createFindAuthor(readMember, (guildId) => knownOf(guildId)?.rooms, rolesOf),
    namePlace: createNamePlace(api),
    openAttachment: files.open,
    publicUrl: files.publicUrl,
    ...createReads(readsDeps),
    isConnected: () => delivery !== undefined && sessions.isReady(),
    async pause(handOverMs = 0) {
      await sessions.handOver(handOverMs);
      const stopping = delivery;
      delivery = undefined;
      await stopping?.stop();
    },
    async close() {
      const stopping = delivery;
      delivery = undefined;
      closing.abort(new Error("The adapter was closed."));
      await stopping?.stop();
      // Lets edits in flight reach Discord before the connection closes.
      await waitAtMost(api.settled(), SETTLE_MS);
      await sessions.close();
    },
  };
}

function toKnownRooms(activeShards: ReadonlyMap<number, ActiveShard>): SinkDeps["rooms"] {
  const shards = () => activeShards.values().map(({ rooms }) => rooms);
  return {
    mayReact: (channelId) => shards().every((rooms) => rooms.mayReact(channelId)),
    mayReadHistory: (channelId) => shards().every((rooms) => rooms.mayReadHistory(channelId)),
    maxFileBytesIn: (channelId) =>
      shards()
        .map((rooms) => rooms.maxFileBytesIn(channelId))
        .find((bytes) => bytes !== undefined),
  };
}

function describeShard(known: ActiveShard | undefined, token: string): ReturnType<EarlierDeps["knownOf"]> {
  // A process that does not listen takes the bot's id from the first part of the token.
  return { rooms: known?.rooms, botId: known?.botId() ?? applicationIdOf(token) ?? "" };
}

function findGuildOfRole(activeShards: Iterable<ActiveShard>, roleId: string): string | undefined {
  for (const { rooms } of activeShards) {
    const guildId = rooms.guildOfRole(roleId);
    if (guildId !== undefined) return guildId;
  }
  return undefined;
}

function createReads(deps: EarlierDeps) {
  const earlier = createReadsEarlier(deps);
  return { ...earlier, ...createReadsRecent({ ...deps, mayShow: earlier.mayShow }), search: createSearch(deps) };
}
