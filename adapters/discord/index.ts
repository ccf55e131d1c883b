import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "discord.js";
import { BoundedMap } from "../../src/concurrency/bounded-map.ts";
import { once } from "../../src/concurrency/once.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { Accept } from "../../src/port/events.ts";
import { createApi } from "./api/client.ts";
import { createFiles } from "./api/files.ts";
import { inviteLink } from "./api/permissions.ts";
import type { Rooms } from "./api/rooms.ts";
import { applicationIdOf, PLATFORM } from "./ids.ts";
import { attachListeners, type IncomingParts } from "./incoming.ts";
import { createConnection, TOKEN_REFUSED } from "./listen/connection.ts";
import { createDelivery, type Delivery } from "./listen/delivery.ts";
import { createDirectChannels, createMemoryStore } from "./listen/direct-channels.ts";
import { readEarlier } from "./listen/earlier.ts";
import type { DiscordAdapterOptions } from "./options.ts";
import { createFinalMessages } from "./write/final-message.ts";
import { createDiscordPace } from "./write/pace.ts";
import { createSeenInteractionMessages } from "./write/seen-messages.ts";
import { createSink } from "./write/sink.ts";
import { createTypings } from "./write/typing.ts";

/** Longest that calls under way hold up the end. */
const SETTLE_MS = 1_000;
/** Interactions that wait for their answer. */
const MAX_FRESH = 1_000;

/** Discord: mentions, threads, direct messages, commands and buttons, on discord.js. */
export function createDiscordAdapter(options: DiscordAdapterOptions): Adapter {
  const { token, apiUrl, log, now, processes } = options;
  const fatal = once(options.onFatal);
  const api = createApi({ token, apiUrl, now, processes, onUnauthorized: () => fatal(TOKEN_REFUSED) });
  const files = createFiles({ api, now, ...(apiUrl !== undefined && { apiUrl }) });
  const fresh = new BoundedMap<string, true>(MAX_FRESH);
  const seenMessages = createSeenInteractionMessages();
  const pace = createDiscordPace(processes);
  const typingIn = createTypings(api);
  /** Undefined in a process that does not listen, or not yet. */
  let rooms: Rooms | undefined;
  let botId = (): string | undefined => undefined;
  const mayReadHistory = (channelId: string): boolean => rooms?.mayReadHistory(channelId) ?? true;
  const closing = new AbortController();
  const directChannels = createDirectChannels(options.directChannels ?? createMemoryStore(), closing.signal);
  const finalMessages = createFinalMessages(api, now, closing.signal);
  let delivery: Delivery | undefined;
  const parts: IncomingParts = {
    api,
    files,
    directChannels,
    fresh,
    seenMessages,
    finalMessages,
    setRooms: (known, knownBotId) => {
      rooms = known;
      botId = knownBotId;
    },
    delivery: () => delivery,
    closing: closing.signal,
  };
  const attach = (client: Client) => attachListeners(client, parts, options);
  const connection = createConnection({ ...options, attach, onFatal: fatal });

  return {
    platform: PLATFORM,
    async listen(accept: Accept) {
      delivery = createDelivery(accept, log);
      await connection.open();
      const applicationId = applicationIdOf(token);
      if (applicationId !== undefined) log.info(`To let the bot into a server, open ${inviteLink(applicationId)}`);
    },
    sink: (address) =>
      createSink(address, {
        api,
        files,
        fresh,
        seenMessages,
        finalMessages,
        pace,
        typingIn,
        rooms: { mayReadHistory },
        now,
      }),
    openAttachment: files.open,
    publicUrl: files.publicUrl,
    readEarlier(event, signal) {
      // The first part of a token is the id of the bot.
      return readEarlier(event, { api, files, rooms, botId: botId() ?? applicationIdOf(token) ?? "" }, signal);
    },
    isConnected: () => delivery !== undefined && connection.isReady(),
    async pause() {
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
      await Promise.race([api.settled(), sleep(SETTLE_MS, undefined, { ref: false })]);
      await connection.close();
    },
  };
}
