import { BoundedMap } from "../../src/concurrency/bounded-map.ts";
import { waitAtMost } from "../../src/concurrency/deadlines.ts";
import { once } from "../../src/concurrency/once.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { Accept } from "../../src/port/events.ts";
import { createApi } from "./api/client.ts";
import { createFiles } from "./api/files.ts";
import { createOptionalCalls } from "./api/optional-calls.ts";
import { inviteLink } from "./api/permissions.ts";
import type { Rooms } from "./api/rooms.ts";
import { applicationIdOf, PLATFORM, shardOf } from "./ids.ts";
import { attachListeners, type IncomingParts } from "./incoming.ts";
import { createAcknowledge, toDeferral } from "./interactions/acknowledge.ts";
import type { Shard } from "./listen/client.ts";
import { TOKEN_REFUSED } from "./listen/connection.ts";
import { createDelivery, type Delivery } from "./listen/delivery.ts";
import { createDirectChannels, createMemoryStore } from "./listen/direct-channels.ts";
import { createDirectRoles, withDirectRoles } from "./listen/direct-roles.ts";
import { createReadsEarlier } from "./listen/earlier.ts";
import { createFindAuthor, createFindMember } from "./listen/find-author.ts";
import { createSessions } from "./listen/sessions.ts";
import type { DiscordAdapterOptions } from "./options.ts";
import { createFinalMessages } from "./write/final-message.ts";
import type { InteractionTokenDeps } from "./write/interaction-token.ts";
import { createDiscordPace } from "./write/pace.ts";
import { createPostPrivately } from "./write/post-privately.ts";
import { createSeenInteractionMessages } from "./write/seen-messages.ts";
import { createSink, type SinkDeps } from "./write/sink.ts";
import { createTypings } from "./write/typing.ts";

/** Longest wait at the end for calls under way. */
const SETTLE_MS = 1_000;
/** Interactions that wait for their answer. */
const MAX_ACKNOWLEDGEMENTS = 1_000;

/** A shard that this process hears, with its channels and the bot's own id. */
interface HeardShard {
  shard: Shard;
  rooms: Rooms;
  botId(): string | undefined;
}

/** Discord: mentions, threads, direct messages, commands and buttons, on discord.js. */
export function createDiscordAdapter(options: DiscordAdapterOptions): Adapter {
  const { token, apiUrl, log, now, processes, waits } = options;
  const fatal = once(options.onFatal);
  const api = createApi({ token, apiUrl, now, processes, waits, onUnauthorized: () => fatal(TOKEN_REFUSED) });
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
  /** The shards that this process hears, by number; none in a process that does not listen. */
  const heard = new Map<number, HeardShard>();
  const reactions = createOptionalCalls(api, { firstCalls: 1 });
  const closing = new AbortController();
  const directChannels = createDirectChannels(options.directChannels ?? createMemoryStore(), closing.signal);
  const finalMessages = createFinalMessages(api, now, closing.signal);
  const findMember = createFindMember(api, closing.signal);
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
    onFatal: fatal,
    attach(client, shard, isInherited) {
      heard.set(shard.id, { shard, ...attachListeners(client, { ...parts, shard, isInherited }, options) });
    },
    detach: (shard) => void heard.delete(shard),
  });

  const knownOf = (guildId: string | undefined) =>
    heard.values().find(({ shard }) => shardOf(guildId, shard.count) === shard.id);

  const guildOfRole = (id: string) => findGuildOfRole(heard.values(), id);
  const rolesOf = createDirectRoles({ namedGroups: options.namedGroups, guildOfRole, findMember, now });

  return {
    platform: PLATFORM,
    async listen(accept: Accept, sayWaits) {
      delivery = createDelivery(withDirectRoles(accept, rolesOf), log, sayWaits);
      await sessions.open();
      const applicationId = applicationIdOf(token);
      if (applicationId !== undefined) log.info(`To let the bot into a server, open ${inviteLink(applicationId)}`);
    },
    sink: (address) =>
      createSink(address, {
        ...tokenDeps,
        isAlone: options.shares === undefined,
        files,
        seenMessages,
        finalMessages,
        pace,
        typingIn,
        rooms: toKnownRooms(heard),
        reactions,
      }),
    postPrivately: createPostPrivately({ ...tokenDeps, finalMessages }),
    findAuthor: createFindAuthor(api, (guildId) => knownOf(guildId)?.rooms, rolesOf),
    openAttachment: files.open,
    publicUrl: files.publicUrl,
    ...createReadsEarlier({
      api,
      files,
      knownOf({ workspaceId }) {
        const known = knownOf(workspaceId);
        // The first part of a token is the id of the bot.
        return { rooms: known?.rooms, botId: known?.botId() ?? applicationIdOf(token) ?? "" };
      },
    }),
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
      // Edits that are under way reach Discord before the connection goes.
      await waitAtMost(api.settled(), SETTLE_MS);
      await sessions.close();
    },
  };
}

/** The channels of all shards that this process hears. */
function toKnownRooms(heard: ReadonlyMap<number, HeardShard>): SinkDeps["rooms"] {
  const shards = () => heard.values().map(({ rooms }) => rooms);
  return {
    mayReact: (channelId) => shards().every((rooms) => rooms.mayReact(channelId)),
    mayReadHistory: (channelId) => shards().every((rooms) => rooms.mayReadHistory(channelId)),
    maxFileBytesIn: (channelId) =>
      shards()
        .map((rooms) => rooms.maxFileBytesIn(channelId))
        .find((bytes) => bytes !== undefined),
  };
}

function findGuildOfRole(heard: Iterable<HeardShard>, roleId: string): string | undefined {
  for (const { rooms } of heard) {
    const guildId = rooms.guildOfRole(roleId);
    if (guildId !== undefined) return guildId;
  }
  return undefined;
}
