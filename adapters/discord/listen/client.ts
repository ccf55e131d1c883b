import type { EventEmitter } from "node:events";
import {
  Client,
  type ClientOptions,
  type CloseCodes,
  Events,
  GatewayIntentBits,
  Options,
  SimpleShardingStrategy,
} from "discord.js";
import type { Logger } from "pino";
import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import type { GatewayInfo } from "./gateway-info.ts";
import type { Identify } from "./identify.ts";

const NEEDED = [GatewayIntentBits.Guilds, GatewayIntentBits.GuildMessages, GatewayIntentBits.DirectMessages];

/** The library itself waits half a minute. */
const GOODBYE_MS = 1_000;

/** Few people and messages are kept: events carry all that the bot needs of them. */
const CACHES = {
  makeCache: Options.cacheWithLimits({
    ...Options.DefaultMakeCacheSettings,
    MessageManager: 0,
    ReactionManager: 0,
    ReactionUserManager: 0,
    PresenceManager: 0,
    VoiceStateManager: 0,
    StageInstanceManager: 0,
    GuildInviteManager: 0,
    GuildBanManager: 0,
    GuildEmojiManager: 0,
    GuildStickerManager: 0,
    GuildScheduledEventManager: 0,
    AutoModerationRuleManager: 0,
    ThreadMemberManager: 0,
    // Without the bot itself its permissions could not be told.
    GuildMemberManager: { maxSize: 100, keepOverLimit: (member) => member.id === member.client.user.id },
    UserManager: { maxSize: 1_000, keepOverLimit: (user) => user.id === user.client.user.id },
  }),
  sweepers: {
    ...Options.DefaultSweeperSettings,
    users: { interval: 3_600, filter: () => (user) => user.id !== user.client.user.id },
    guildMembers: { interval: 3_600, filter: () => (member) => member.id !== member.client.user.id },
  },
} satisfies Partial<ClientOptions>;

/** One of `count` parts of the bot's servers, each heard over a connection of its own. */
export interface Shard {
  id: number;
  count: number;
}

export interface GatewayClientOptions {
  gateway: GatewayInfo;
  shard: Shard;
  identify: Identify;
  /** Asks for the content of messages that do not mention the bot. */
  hasContent: boolean;
  /** The code with which the connection is closed: it says if the session is over. */
  closeCode(): CloseCodes;
  log: Logger;
}

/** The library's client of one shard, for the gateway alone: bounded caches, no more intents than needed. Not connected yet. */
export function createGatewayClient(options: GatewayClientOptions): Client {
  const { gateway, shard, identify, hasContent, closeCode, log } = options;
  const client = new Client({
    intents: hasContent ? [...NEEDED, GatewayIntentBits.MessageContent] : NEEDED,
    shards: [shard.id],
    shardCount: shard.count,
    // All that it calls for by itself, and each of several clients would.
    rest: { makeRequest: async () => Response.json(await gateway.read()) },
    ws: {
      buildIdentifyThrottler: () => ({ waitForIdentify: identify }),
      buildStrategy(manager) {
        const strategy = new SimpleShardingStrategy(manager);
        const destroy = strategy.destroy.bind(strategy);
        strategy.destroy = (ending) => destroy({ ...ending, code: closeCode() });
        return strategy;
      },
    },
    ...CACHES,
  });
  catchPacketErrors(client, log);
  // Without listeners these two would end the process.
  client.on(Events.Error, (error) => log.error({ err: error }, "discord.js reported an error."));
  client.on(Events.ShardError, (error, shard) => log.warn({ err: error, shard }, "A connection to Discord failed."));
  client.on(Events.ShardReconnecting, (shard) => log.info({ shard }, "Connecting to Discord again."));
  client.on(Events.ShardResume, (shard) =>
    log.info({ shard }, "The connection to Discord goes on where it broke off."),
  );
  return client;
}

/** Ends a client, connected or not. Waits a short while for Discord to say goodbye, which over a dead line it never does. */
export async function discard(client: Client): Promise<void> {
  catchConnectionErrors(client);
  // One that was not connected has nothing to end.
  const ending = client.destroy().catch(() => {});
  await waitAtMost(ending, GOODBYE_MS);
}

interface LibraryPackets {
  handlePacket(packet: { t: string } | undefined, shard: unknown): boolean;
}

/**
 * Keeps a packet that the library cannot parse from ending the process: the library parses every packet, also those to
 * which nobody listens, and the bot's own listeners have read it before.
 */
function catchPacketErrors(client: Client, log: Logger): void {
  const library = client.ws as unknown as LibraryPackets;
  const handle = library.handlePacket.bind(library);
  library.handlePacket = (packet, shard) => {
    try {
      return handle(packet, shard);
    } catch (error) {
      log.warn({ err: error, event: packet?.t }, "discord.js could not read a packet from Discord.");
      return false;
    }
  };
}

interface LibraryInside {
  _ws: { strategy: { shards: ReadonlyMap<number, { connection: EventEmitter | null }> } } | null;
}

/**
 * Keeps a connection that is still being made from ending the process when it fails: the library has taken its own
 * listeners off it by then, and an unheard error is fatal.
 */
function catchConnectionErrors(client: Client): void {
  const { _ws } = client.ws as unknown as LibraryInside;
  for (const { connection } of _ws?.strategy.shards.values() ?? []) connection?.on("error", () => {});
}
