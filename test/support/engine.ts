import { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import type { CommandEvent, InboundEvent } from "../../src/adapter.ts";
import { createAnswers } from "../../src/answers.ts";
import { createAttempt } from "../../src/attempt.ts";
import { createBot } from "../../src/bot.ts";
import { createForgetCommand } from "../../src/commands/forget.ts";
import { createHelpCommand } from "../../src/commands/help.ts";
import { createQuietCommand } from "../../src/commands/quiet.ts";
import { createReadContext } from "../../src/context.ts";
import type { Gateway } from "../../src/gateway/client.ts";
import { createHistory } from "../../src/history.ts";
import { createMetrics } from "../../src/metrics.ts";
import { createEvenPacer } from "../../src/pacing/even.ts";
import { createScheduler } from "../../src/pacing/scheduler.ts";
import { createEmbeddedQueue } from "../../src/queue/embedded.ts";
import type { Queue } from "../../src/queue/queue.ts";
import { createStores } from "../../src/store/keyv.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { createTurnRecords } from "../../src/turn-record.ts";
import { fakeGateway, type Step } from "./fake-gateway.ts";
import { fakePlatform } from "./fake-platform.ts";
import { silent } from "./log.ts";

export interface EngineOptions {
  scripts?: Step[][];
  /** Instead of the one that plays the scripts. */
  gateway?: Gateway;
  database?: DatabaseSync;
  platform?: ReturnType<typeof fakePlatform>;
  maxEntries?: number;
  tools?: Tool[];
  log?: Logger;
}

/** The bot as the service composes it, between a scripted gateway and a channel that can be looked at. */
export function startEngine({
  scripts = [["Hello."]],
  database = new DatabaseSync(":memory:"),
  platform = fakePlatform(),
  maxEntries = 60,
  tools = [],
  log = silent,
  ...options
}: EngineOptions = {}) {
  const { gateway, requests, open } = fakeGateway(...scripts);
  const stores = createStores({ redisUrl: undefined, database, log });
  const history = createHistory({ open: stores.open, ttlMs: 86_400_000, log, now: Date.now });
  const records = createTurnRecords({ open: stores.open, ttlMs: 86_400_000, log });
  const queue = createEmbeddedQueue({ database, maxActive: 16, log, retryMs: [1, 4] });
  const scheduler = createScheduler({
    pacerFor: () => createEvenPacer({ gap: 0.001 }),
    now: () => performance.now() / 1_000,
  });
  const adapterOf = () => platform.adapter;
  const readContext = createReadContext({
    history,
    systemPrompt: "Be kind.",
    maxEntries,
    maxTokens: 16_000,
    adapterOf,
    log,
  });
  const attempt = createAttempt({
    gateway: options.gateway ?? gateway,
    model: "fake",
    tools,
    readContext,
    history,
    records,
    scheduler,
    adapterOf,
    pseudonym: (_, userId) => `pseudonym-of-${userId}`,
    metrics: createMetrics(),
    log,
  });
  const erase = async ({ key, author }: CommandEvent) => {
    await queue.forget("test", author.id, key);
    const count = await history.forgetAuthor("test", author.id);
    await records.forget("test", author.id);
    return count;
  };
  const commands = [createQuietCommand(history), createForgetCommand(erase)];
  commands.push(createHelpCommand("Palaver", commands));
  const answers = createAnswers({ records, history, adapterOf, attempt, log });
  const idle = watchIdle(queue, createBot({ answers, history, commands, adapterOf, log }));

  return {
    ...platform,
    requests,
    openStreams: open,
    history,
    records,
    queue,
    accept: async (event: InboundEvent) => void (await queue.accept(event)),
    /** Resolves when nothing waits and nothing runs. */
    idle,
  };
}

function watchIdle(queue: Queue, worker: Parameters<Queue["start"]>[0]): () => Promise<void> {
  const watchers: Array<() => void> = [];
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
    while (queue.depth().waiting > 0 || queue.depth().active > 0) {
      await new Promise<void>((resolve) => watchers.push(resolve));
    }
  };
}
