import { createDiscordAdapter } from "../../../adapters/discord/adapter.ts";
import type { ThreadMode } from "../../../adapters/discord/options.ts";
import { toDirectChannelStore } from "../../../adapters/discord/stores.ts";
import { createEngine } from "../../../src/app/engine.ts";
import { createGateway } from "../../../src/gateway/client.ts";
import { createMetrics } from "../../../src/metrics/metrics.ts";
import { createScheduler } from "../../../src/pacing/scheduler.ts";
import { NO_RIGHT } from "../../../src/port/right.ts";
import { openDatabase } from "../../../src/store/database.ts";
import { createStores } from "../../../src/store/keyv.ts";
import type { Discord } from "../../discord-sim/simulator.ts";
import { LIMITS } from "../../support/engine.ts";
import { silent } from "../../support/log.ts";
import { noLinks } from "../../support/picture-turn.ts";

export interface DiscordEngineOptions {
  discord: Pick<Discord, "token">;
  origin: string;
  threads: ThreadMode;
  gatewayUrl: string;
  /** Called after the bot has accepted a question. */
  onAccepted(): void;
}

/** Runs the engine and the Discord adapter in this process, connected as in the service. */
export async function startDiscordEngine(options: DiscordEngineOptions) {
  const { discord, origin, threads, gatewayUrl, onAccepted } = options;
  const database = openDatabase(":memory:");
  const stores = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  const scheduler = createScheduler({ now: () => performance.now() });
  const gateway = createGateway({ baseUrl: gatewayUrl, apiKey: "none", log: silent });
  const engine = createEngine({
    botName: "Palaver",
    model: "scripted",
    imageModel: undefined,
    systemPrompt: "Be kind.",
    // discord.js reads a channel for one question at a time. With context messages, the answers would therefore not
    // start together, as they do in virtual time.
    limits: { ...LIMITS, contextMessages: 0 },
    policy: () => ({}),
    database,
    stores,
    gateway,
    toTools: () => [],
    references: { ...noLinks, prepare: async () => ({ ok: false, problems: ["It cannot be reached."] }) },
    scheduler,
    adapterOf: () => adapter,
    pseudonym: (_, userId) => `pseudonym-of-${userId}`,
    metrics: createMetrics(),
    log: silent,
  });
  const adapter = createDiscordAdapter({
    token: discord.token,
    apiUrl: `${origin}/api`,
    threads,
    commands: engine.commands,
    listModels: engine.listModels,
    directChannels: toDirectChannelStore(stores),
    log: silent,
    now: Date.now,
    onFatal: () => {},
  });
  const { queue, worker } = engine;
  queue.start(worker);
  await adapter.listen(async (event) => {
    await engine.accept(event);
    onAccepted();
  });
  return {
    isIdle: () => queue.depth().waiting === 0 && queue.depth().active === 0,
    async close() {
      await adapter.pause();
      await queue.close(1_000);
      scheduler.close();
      await adapter.close();
      await gateway.close();
    },
  };
}
