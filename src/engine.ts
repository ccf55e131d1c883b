import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import type { Accept, Adapter, CommandEvent } from "./adapter.ts";
import { createAnswers } from "./answers.ts";
import { createAttempt } from "./attempt.ts";
import { createBot } from "./bot.ts";
import type { Command } from "./commands/command.ts";
import { createExportCommand } from "./commands/export.ts";
import { createForgetCommand } from "./commands/forget.ts";
import { createHelpCommand } from "./commands/help.ts";
import { createModelCommand } from "./commands/model.ts";
import { createPersonaCommand } from "./commands/persona.ts";
import { createQuietCommand } from "./commands/quiet.ts";
import { createReadContext } from "./context.ts";
import { createRate } from "./feedback.ts";
import type { Gateway } from "./gateway/client.ts";
import { createHistory, type History } from "./history.ts";
import { createAccept } from "./intake.ts";
import type { Metrics } from "./metrics.ts";
import { createModelList, type ListModels } from "./model-list.ts";
import type { Scheduler } from "./pacing/scheduler.ts";
import { createEmbeddedQueue } from "./queue/embedded.ts";
import type { Queue, Worker } from "./queue/queue.ts";
import { createSettings } from "./settings.ts";
import { emptyLog } from "./store/database.ts";
import type { Stores } from "./store/keyv.ts";
import { withOptionalTools } from "./tool-support.ts";
import type { Tool } from "./tools/tool.ts";
import { createTurnRecords, type TurnRecords } from "./turn-record.ts";

export interface EngineOptions {
  botName: string;
  /** Where a channel has none of its own. */
  model: string;
  systemPrompt: string;
  limits: { historyTtlMs: number; historyMaxMessages: number; historyMaxTokens: number; maxConcurrentTurns: number };
  database: DatabaseSync;
  stores: Pick<Stores, "open">;
  gateway: Gateway;
  toTools(history: History): readonly Tool[];
  scheduler: Scheduler;
  adapterOf(platform: string): Adapter;
  pseudonym(platform: string, userId: string): string;
  metrics: Metrics;
  log: Logger;
  /** Pauses of the queue between attempts at failed work. */
  retryMs?: readonly [first: number, longest: number];
}

/** Everything between the platforms and the gateway: events go in, replies come out at their addresses. */
export interface Engine {
  accept: Accept;
  commands: readonly Command[];
  /** What `/model` offers. */
  listModels: ListModels;
  history: History;
  records: TurnRecords;
  queue: Queue;
  /** What the queue is to be started with. */
  worker: Worker;
}

/** Puts the engine together. Nothing is worked on before the queue is started. */
export function createEngine(options: EngineOptions): Engine {
  const { database, stores, limits, adapterOf, log, retryMs } = options;
  const ttlMs = limits.historyTtlMs;
  const history = createHistory({ open: stores.open, ttlMs, log, now: Date.now });
  const records = createTurnRecords({ open: stores.open, ttlMs, log });
  const settings = createSettings({ open: stores.open, ttlMs, log });
  const queue = createEmbeddedQueue({
    database,
    maxActive: limits.maxConcurrentTurns,
    log,
    ...(retryMs !== undefined && { retryMs }),
  });
  const readContext = createReadContext({
    history,
    maxEntries: limits.historyMaxMessages,
    maxTokens: limits.historyMaxTokens,
    adapterOf,
    log,
  });
  const gateway = withOptionalTools(options.gateway, log);
  const { model, systemPrompt, scheduler, pseudonym, metrics } = options;
  const tools = options.toTools(history);
  const turn = { gateway, model, systemPrompt, tools, scheduler, pseudonym, metrics };
  const attempt = createAttempt({ ...turn, readContext, settings, history, records, adapterOf, log });
  const answers = createAnswers({ records, history, adapterOf, attempt, log });

  const erase = async ({ key, reply: { platform }, author }: CommandEvent) => {
    await queue.forget(platform, author.id, key);
    const count = await history.forgetAuthor(platform, author.id);
    await records.forget(platform, author.id);
    await settings.forgetAuthor(platform, author.id);
    await adapterOf(platform).forget?.(author.id);
    emptyLog(database);
    return count;
  };
  const collect = async (platform: string, authorId: string) => ({
    ...(await history.exportAuthor(platform, authorId)),
    personas: await settings.exportAuthor(platform, authorId),
  });
  const listModels = createModelList({ gateway, model, log, now: Date.now });
  const commands: Command[] = [
    createQuietCommand(history),
    createModelCommand({ settings, listModels, model }),
    createPersonaCommand(settings),
    createExportCommand(collect),
    createForgetCommand(erase),
  ];
  commands.unshift(createHelpCommand(options.botName, commands));

  metrics.observeQueue(queue.depth);
  const accept = createAccept({ queue, history, answers, records, log });
  return {
    accept,
    commands,
    listModels,
    history,
    records,
    queue,
    worker: createBot({ answers, history, commands, rate: createRate({ records, metrics }), accept, adapterOf, log }),
  };
}
