import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { createEngine } from "../../src/app/engine.ts";
import type { Policy } from "../../src/config/policy/policy-file.ts";
import type { Gateway } from "../../src/gateway/client.ts";
import { type Insight, withTrends } from "../../src/insight/insight.ts";
import type { References } from "../../src/media/reference.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createScheduler } from "../../src/pacing/scheduler.ts";
import type { Adapter } from "../../src/port/adapter.ts";
import type { InboundEvent, ReplyAddress } from "../../src/port/events.ts";
import type { Right } from "../../src/port/right.ts";
import type { Queue, Worker } from "../../src/queue/queue.ts";
import { createSqliteJournal } from "../../src/queue/sqlite-journal.ts";
import { createAlarm } from "../../src/schedules/alarm.ts";
import type { Stores } from "../../src/store/keyv.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { countWaiting, endWithTest, openBotStores } from "./bot-store.ts";
import { fakeGateway, type Step } from "./fake-gateway.ts";
import { fakePlatform } from "./fake-platform.ts";
import { silent } from "./log.ts";
import { noLinks } from "./picture-turn.ts";
import { createQuickScheduler } from "./quick-scheduler.ts";
import { wrapStores } from "./turns.ts";

/** High enough that no test reaches a limit by accident. */
export const LIMITS = {
  historyTtlMs: 86_400_000,
  historyMaxMessages: 60,
  historyMaxTokens: 16_000,
  contextMessages: 15,
  maxConcurrentTurns: 16,
  maxReferences: 8,
};

export interface EngineOptions {
  scripts?: Step[][];
  gateway?: Gateway;
  model?: string;
  /** Absent: the bot creates no images. */
  imageModel?: string;
  database?: DatabaseSync;
  wrapStores?(stores: Stores): Stores;
  /** The `Right` that all events use, instead of the queue's. */
  right?: Right;
  /** The store's database, instead of the queue's. */
  storeDatabase?: DatabaseSync;
  platform?: ReturnType<typeof fakePlatform>;
  adapterOf?: (platform: string) => Adapter;
  maxEntries?: number;
  tools?: readonly Tool[];
  /** Tools from MCP servers, by channel. */
  outsideTools?(place: ReplyAddress): readonly Tool[];
  outside?: Parameters<typeof createEngine>[0]["outside"];
  /** Gives the gateway links to images. Absent: the gateway can fetch no images. */
  references?: References;
  removesWithQuestion?: boolean;
  pseudonym?(platform: string, userId: string): string;
  /** The policy; absent: an empty one. */
  policy?: () => Policy;
  openInsight?(stores: Stores, database: DatabaseSync): Insight;
  /** If true, replies keep the pace of their sinks. Otherwise they hardly wait. */
  isPaced?: boolean;
  log?: Logger;
}

/** Starts the bot like the service does, but with a scripted gateway and a fake channel. */
export function startEngine({
  scripts = [["Hello."]],
  model = "fake",
  database = new DatabaseSync(":memory:"),
  platform = fakePlatform(),
  maxEntries = LIMITS.historyMaxMessages,
  tools = [],
  log = silent,
  ...options
}: EngineOptions = {}) {
  const { gateway, requests, open } = fakeGateway(...scripts);
  const stores = openBotStores(options.storeDatabase ?? database, log);
  const insight = options.openInsight?.(stores, database);
  const metrics = insight === undefined ? createMetrics() : withTrends(createMetrics(), insight.trends);
  const engine = createEngine({
    insight,
    botName: "Palaver",
    removesWithQuestion: options.removesWithQuestion ?? false,
    model,
    imageModel: options.imageModel,
    systemPrompt: "Be kind.",
    limits: { ...LIMITS, historyMaxMessages: maxEntries },
    policy: options.policy ?? (() => ({})),
    database,
    stores: options.wrapStores === undefined ? stores : wrapStores(stores, options.wrapStores),
    gateway: options.gateway ?? gateway,
    toTools: () => tools,
    outside: { ...options.outside, ...(options.outsideTools && { toolsOf: options.outsideTools }) },
    references: options.references ?? {
      ...noLinks,
      prepare: async () => ({ ok: false, problems: ["It cannot be reached."] }),
    },
    scheduler: options.isPaced ? createScheduler({ now: () => performance.now() }) : createQuickScheduler(1),
    adapterOf: options.adapterOf ?? (() => platform.adapter),
    pseudonym: options.pseudonym ?? ((_, userId) => `pseudonym-of-${userId}`),
    metrics,
    log,
    retryMs: [1, 4],
  });
  const { accept, commands, findTurn, history, records, settings, audit, queue, usage, isListening, looking } = engine;
  const { right } = options;
  const worker: Worker =
    right === undefined
      ? engine.worker
      : { ...engine.worker, work: (events, work) => engine.worker.work(events, { ...work, right }) };
  const idle = watchIdle(queue, worker, stores);
  /** Accepts an event, and waits until nothing is left to do. */
  async function handle<E extends InboundEvent>(event: E): Promise<E> {
    await accept(event);
    await idle();
    return event;
  }
  /** An alarm like that of another process. Its clock shows Unix milliseconds. */
  const openAlarm = (clock: () => number, schedules = engine.schedules) => createAlarm({ ...engine, schedules, clock });
  return {
    openAlarm,
    /** Starts the scheduled runs that are due at a time, in Unix milliseconds. */
    fireAt: (at: number) => openAlarm(() => at).look(),
    schedules: engine.schedules,
    ...platform,
    requests,
    openStreams: open,
    accept,
    handle,
    commands,
    findTurn,
    readAbout: engine.readAbout,
    namedGroups: engine.access.namedGroups,
    history,
    records,
    settings,
    audit,
    stores,
    queue,
    worker: engine.worker,
    imagineMenu: engine.imagineMenu,
    scheduleForm: engine.scheduleForm,
    usage,
    looking,
    isListening,
    metrics,
    idle,
  };
}

const RECOUNT_MS = 100;

/** Starts the queue. The returned function resolves when no work waits or runs. */
export function watchIdle(queue: Queue, worker: Worker, stores: Stores): () => Promise<void> {
  const watchers: Array<() => void> = [];
  endWithTest(queue);
  queue.start({
    ...worker,
    async work(events, work) {
      try {
        return await worker.work(events, work);
      } finally {
        // Waits a moment, because the queue updates its count shortly after the work ends.
        setImmediate(() => {
          for (const wake of watchers.splice(0)) wake();
        });
      }
    },
  });
  return async () => {
    while ((await countWaiting(queue, stores)) > 0 || queue.depth().active > 0) {
      // Count again at intervals, because an early count still includes the last work and no later event would correct
      // it.
      await Promise.race([new Promise<void>((resolve) => watchers.push(resolve)), sleep(RECOUNT_MS)]);
    }
  };
}

/** Accepts an event like a process that dies before it works on the event. */
export async function acceptElsewhere(database: DatabaseSync, event: InboundEvent): Promise<void> {
  await createSqliteJournal({ database, log: silent }).accept(event);
}
