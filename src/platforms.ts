import type { DatabaseSync } from "node:sqlite";
import type { Hono } from "hono";
import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { createDiscordAdapter } from "../adapters/discord/index.ts";
import { createLocalAdapter, EXAMPLES } from "../adapters/local/index.ts";
import type { Adapter } from "./adapter.ts";
import type { Config } from "./config.ts";
import type { Engine } from "./engine.ts";
import type { Stores } from "./store/keyv.ts";

/** Offered at the page while the sandbox gateway answers, which can fail on request. */
const FAILURE_EXAMPLE = { label: "See a failure", prompt: "sandbox fault: cut" };

export interface PlatformsOptions {
  config: Config;
  engine: Pick<Engine, "commands" | "listModels">;
  database: DatabaseSync;
  stores: Pick<Stores, "open">;
  log: Logger;
  /** A platform takes this bot no more. */
  onFatal(reason: string): void;
}

/** The adapters that are switched on. */
export interface Platforms {
  adapters: ReadonlyMap<string, Adapter>;
  /** What they serve on the one HTTP server. */
  mounts: Hono[];
}

/** Makes the adapters that the configuration switches on, and no other file knows them. */
export function createPlatforms(options: PlatformsOptions): Platforms {
  const { localChat } = options.config;
  const local = createLocal(options);
  const adapters = [localChat.enabled ? local : undefined, createDiscord(options)].filter(
    (adapter) => adapter !== undefined,
  );
  return {
    adapters: new Map(adapters.map((adapter) => [adapter.platform, adapter])),
    mounts: localChat.enabled ? [local.app] : [],
  };
}

function createLocal({ config, engine, database, log }: PlatformsOptions) {
  const { localChat, botName, gateway } = config;
  const examples = gateway.baseUrl === undefined ? [...EXAMPLES, FAILURE_EXAMPLE] : EXAMPLES;
  return createLocalAdapter({ ...localChat, database, botName, log, commands: engine.commands, examples });
}

function createDiscord({ config, engine, stores, log, onFatal }: PlatformsOptions): Adapter | undefined {
  if (config.discord === undefined) return undefined;
  const { token, threads, apiUrl, guildId } = config.discord;
  return createDiscordAdapter({
    token,
    threads,
    ...(apiUrl !== undefined && { apiUrl }),
    ...(guildId !== undefined && { guildId }),
    commands: engine.commands,
    listModels: engine.listModels,
    directs: toDirects(stores.open("discord")),
    log,
    now: Date.now,
    onFatal,
  });
}

/** Where the Discord adapter keeps the direct conversations it knows. */
function toDirects(keyv: Keyv) {
  return {
    read: async () => (await keyv.get<string[]>("directs")) ?? [],
    write: async (ids: readonly string[]) => void (await keyv.set("directs", ids)),
  };
}
