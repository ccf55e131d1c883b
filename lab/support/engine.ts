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
import type { ReplyAddress } from "../../src/port/events.ts";
import type { Queue, Worker } from "../../src/queue/queue.ts";
import type { Stores } from "../../src/store/keyv.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { countWaiting, endWithTest, openBotStores } from "./bot-store.ts";
import { fakeGateway, type Step } from "./fake-gateway.ts";
import { fakePlatform } from "./fake-platform.ts";
import { silent } from "./log.ts";
import { noLinks } from "./picture-job.ts";
import { createQuickScheduler } from "./quick-scheduler.ts";

/** Generous, so that no test meets one that is not about it. */
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
  /** Instead of the scripts. */
  gateway?: Gateway;
  model?: string;
  /** Without it nothing is drawn. */
  imageModel?: string;
  database?: DatabaseSync;
  wrapStores?(stores: Stores): Stores;
  /** Instead of the database of the queue. */
  storeDatabase?: DatabaseSync;
  platform?: ReturnType<typeof fakePlatform>;
  /** Instead of the platform's. */
  adapterOf?: (platform: string) => Adapter;
  maxEntries?: number;
  tools?: readonly Tool[];
  /** Tools of servers, by place. */
  outsideTools?(place: ReplyAddress): readonly Tool[];
  outside?: Parameters<typeof createEngine>[0]["outside"];
  /** Makes pictures reachable for the gateway; without it none is. */
  references?: References;
  removesWithQuestion?: boolean;
  pseudonym?(platform: string, userId: string): string;
  /** What the policy file says; without it nothing. */
  policy?: () => Policy;
  /** Hears of the turns. */
  openInsight?(stores: Stores, database: DatabaseSync): Insight;
  /** Replies are written at the pace that their sinks bring; otherwise they hardly wait. */
  isPaced?: boolean;
  log?: Logger;
}

/** The bot as the service composes it, between a scripted gateway and a channel that can be looked at. */
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
    stores: options.wrapStores?.(stores) ?? stores,
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
  const { accept, commands, history, records, settings, audit, queue, imagineMenu, usage, isListening, looking } =
    engine;
  /** Resolves when nothing waits and nothing runs. */
  const idle = watchIdle(queue, engine.worker, stores);
  return {
    ...platform,
    requests,
    openStreams: open,
    accept,
    commands,
    history,
    records,
    settings,
    audit,
    stores,
    queue,
    worker: engine.worker,
    imagineMenu,
    usage,
    looking,
    isListening,
    metrics,
    idle,
  };
}

const RECOUNT_MS = 100;

/** Starts the queue. The function it gives resolves when nothing waits and nothing runs. */
export function watchIdle(queue: Queue, worker: Worker, stores: Stores): () => Promise<void> {
  const watchers: Array<() => void> = [];
  endWithTest(queue);
  queue.start({
    ...worker,
    async work(events, signal) {
      try {
        return await worker.work(events, signal);
      } finally {
        // The queue counts the work as done a moment after it ended.
        setImmediate(() => {
          for (const wake of watchers.splice(0)) wake();
        });
      }
    },
  });
  return async () => {
    while ((await countWaiting(queue, stores)) > 0 || queue.depth().active > 0) {
      // Woken a little early, it would find the last work still counted and wait for a next one that never ends.
      await Promise.race([new Promise<void>((resolve) => watchers.push(resolve)), sleep(RECOUNT_MS)]);
    }
  };
}
