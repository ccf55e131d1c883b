import { setTimeout as sleep } from "node:timers/promises";
import { createEngine } from "../../../src/app/engine.ts";
import { createGateway } from "../../../src/gateway/client.ts";
import { createMetrics } from "../../../src/metrics/metrics.ts";
import { createScheduler } from "../../../src/pacing/scheduler.ts";
import type { Accept, InboundEvent } from "../../../src/port/events.ts";
import { openDatabase } from "../../../src/store/database.ts";
import { createStores, type Stores } from "../../../src/store/keyv.ts";
import type { TurnRecord } from "../../../src/turn/record.ts";
import { LIMITS } from "../engine.ts";
import { silent } from "../log.ts";
import { noLinks } from "../picture-job.ts";
import { openLine } from "./line.ts";
import type { Visit } from "./shop.ts";
import type { Upstream } from "./upstream.ts";
import type { World } from "./world.ts";

/** Short, so that a silence is a fault and not a pause of the loop. */
const GATEWAY_LIMITS = {
  firstTokenMs: 2_500,
  idleMs: 1_200,
  tailMs: 300,
  backoffMinMs: 20,
  backoffMaxMs: 80,
  maxRetryWaitMs: 3_000,
};
const END_MS = 5_000;

export interface ServiceOptions {
  world: Pick<World, "origin" | "startAdapter">;
  upstream: Pick<Upstream, "url">;
  /** Where its tools act. The service that has it ends it. */
  visit?: Visit;
  /** The disk of an earlier life. */
  disk: Uint8Array | undefined;
  /** Told of every event that was taken over; each is handed over twice when this says so. */
  onAccepted(event: InboundEvent): void;
  isDoubled(): boolean;
  /** What a question sees of its channel; absent: as is usual. */
  contextMessages?: number;
}

/** One life of the service: the engine and the platform's adapter, as they are composed in earnest. */
export interface Service {
  /** Nothing waits and nothing runs. */
  isIdle(): boolean;
  isConnected(): boolean;
  /** The turns there are, by what is on the disk. */
  readTurns(): Promise<TurnRecord[]>;
  /** Events whose work is not done. */
  countOpen(): number;
  /**
   * Ends it between two instructions, as a kill does: nothing that it still does reaches anybody. What was on its disk
   * at that moment is given back.
   */
  kill(): Uint8Array;
  /** Lets it end in peace. */
  close(): Promise<void>;
}

export async function startService(options: ServiceOptions): Promise<Service> {
  const { world, upstream, visit, disk, onAccepted, isDoubled, contextMessages = LIMITS.contextMessages } = options;
  const database = openDatabase(":memory:");
  if (disk !== undefined) database.deserialize(disk);
  const stores = createStores({ redisUrl: undefined, database, log: silent });
  const scheduler = createScheduler({ now: () => performance.now() });
  const gateway = createGateway({ baseUrl: upstream.url, apiKey: "none", log: silent, limits: GATEWAY_LIMITS });
  const engine = createEngine({
    botName: "Palaver",
    model: "scripted",
    imageModel: undefined,
    systemPrompt: "Be kind.",
    limits: { ...LIMITS, historyMaxMessages: 1_000, historyMaxTokens: 1_000_000, contextMessages },
    policy: () => ({}),
    database,
    stores,
    gateway,
    toTools: () => [],
    ...(visit && { outside: { toolsOf: visit.toolsOf } }),
    references: { ...noLinks, prepare: async () => ({ ok: false, problems: ["It cannot be reached."] }) },
    scheduler,
    adapterOf: () => adapter,
    pseudonym: (_, userId) => `pseudonym-of-${userId}`,
    metrics: createMetrics(),
    log: silent,
    retryMs: [100, 1_000],
  });
  const line = await openLine(world.origin);
  const adapter = world.startAdapter({ origin: line.origin, engine, stores });
  const { queue, worker } = engine;
  let isDead = false;
  queue.start(worker);
  const accept: Accept = async (event) => {
    if (isDead) throw new Error("This process is dead.");
    await Promise.all(isDoubled() ? [engine.accept(event), engine.accept(event)] : [engine.accept(event)]);
    if (!isDead) onAccepted(event);
  };
  await adapter.listen(accept);

  /** The rest of a dead process's work ends by itself; nobody waits for it. */
  async function end(graceMs: number): Promise<void> {
    await adapter.pause();
    await queue.close(graceMs);
    scheduler.close();
    await adapter.close();
    await gateway.close();
    await Promise.all([line.close(), visit?.close()]);
  }

  return {
    isIdle: () => queue.depth().waiting === 0 && queue.depth().active === 0,
    isConnected: adapter.isConnected,
    readTurns: () => readTurns(stores),
    countOpen() {
      const row = database.prepare("SELECT count(*) AS open FROM queue_event WHERE event IS NOT NULL").get();
      return Number(row?.["open"]);
    },
    kill() {
      isDead = true;
      const left = database.serialize();
      line.cut();
      visit?.cut();
      void gateway.close();
      void end(0).catch(() => {});
      return left;
    },
    async close() {
      await Promise.race([end(1_000), sleep(END_MS, undefined, { ref: false })]);
    },
  };
}

/** The turns there are in a store. */
export async function readTurns(stores: Pick<Stores, "open">): Promise<TurnRecord[]> {
  const turns: TurnRecord[] = [];
  const iterator = stores.open("turns").iterator?.(undefined) as AsyncIterable<[string, unknown]> | undefined;
  for await (const [, record] of iterator ?? []) if (isTurn(record)) turns.push(record);
  return turns;
}

function isTurn(value: unknown): value is TurnRecord {
  return typeof value === "object" && value !== null && "messageIds" in value && "posted" in value;
}
