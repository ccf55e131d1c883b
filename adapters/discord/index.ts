import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "discord.js";
import type { Accept, Adapter } from "../../src/adapter.ts";
import { createApi } from "./api.ts";
import { createConnection } from "./connection.ts";
import { createDelivery, type Delivery } from "./delivery.ts";
import { createDirects } from "./directs.ts";
import { createFiles } from "./files.ts";
import { PLATFORM } from "./ids.ts";
import type { DiscordAdapterOptions } from "./options.ts";
import { listenTo } from "./packets.ts";
import { createSink } from "./sink.ts";

/** Longest that calls under way hold up the end. */
const SETTLE_MS = 10_000;

/** Discord: mentions, threads, direct messages, commands and buttons, on discord.js. */
export function createDiscordAdapter(options: DiscordAdapterOptions): Adapter {
  const { token, apiUrl, log, now } = options;
  const fatal = createFatal(options.onFatal);
  const api = createApi({ token, apiUrl, now, onUnauthorized: () => fatal(UNAUTHORIZED) });
  const files = createFiles({ api, apiUrl, now });
  const directs = createDirects(options.directs);
  const fresh = new Set<string>();
  const closing = new AbortController();
  let delivery: Delivery | undefined;
  const parts = { api, files, directs, fresh, delivery: () => delivery, closing: closing.signal };
  const attach = (client: Client) => listenTo(client, parts, options);
  const connection = createConnection({ ...options, attach, onFatal: fatal });

  return {
    platform: PLATFORM,
    async listen(accept: Accept) {
      delivery = createDelivery(accept, log);
      await connection.open();
    },
    sink: (address) => createSink(address, { api, fresh, now }),
    openAttachment: files.open,
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

const UNAUTHORIZED =
  "Discord does not accept the token any more. Copy the bot's token from the Developer Portal, under Bot, and start again.";

function createFatal(onFatal: (reason: string) => void): (reason: string) => void {
  let isTold = false;
  return (reason) => {
    if (isTold) return;
    isTold = true;
    onFatal(reason);
  };
}
