import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import { createReadAbout, type ReadAbout } from "./about.ts";
import type { Accept, Adapter, CommandEvent } from "./adapter.ts";
import { createAnswers } from "./answers.ts";
import { createAttempt } from "./attempt.ts";
import { createBot } from "./bot.ts";
import { type Command, mayConfigure } from "./commands/command.ts";
import { createExportCommand } from "./commands/export.ts";
import { createForgetCommand } from "./commands/forget.ts";
import { createHelpCommand } from "./commands/help.ts";
import { createImagineCommand } from "./commands/imagine.ts";
import { createModelCommand } from "./commands/model.ts";
import { createPersonaCommand } from "./commands/persona.ts";
import { createQuietCommand } from "./commands/quiet.ts";
import { createReadContext } from "./context.ts";
import { createEraseConversations, type EraseConversations } from "./conversation-erasure.ts";
import { createBringEarlier } from "./earlier.ts";
import { createRate } from "./feedback.ts";
import type { Gateway } from "./gateway/client.ts";
import { createHistory, type History } from "./history.ts";
import { createJobStore } from "./imagine/job-store.ts";
import { createImagineMenu } from "./imagine/menu.ts";
import { createImagine } from "./imagine.ts";
import type { ImagineMenu } from "./imagine-menu.ts";
import { createAccept } from "./intake.ts";
import type { References } from "./media/reference.ts";
import type { Metrics } from "./metrics.ts";
import { createModelLists, type ListModels } from "./model-list.ts";
import type { Scheduler } from "./pacing/scheduler.ts";
import { withOptionalPictures } from "./picture-support.ts";
import { createEmbeddedQueue } from "./queue/embedded.ts";
import type { Queue, Worker } from "./queue/queue.ts";
import { createSettings } from "./settings.ts";
import { emptyLog } from "./store/database.ts";
import type { Stores } from "./store/keyv.ts";
import { withOptionalTools } from "./tool-support.ts";
import { createGenerateImage } from "./tools/generate-image.ts";
import type { Tool } from "./tools/tool.ts";
import { createTurnRecords, type TurnRecords } from "./turn-record.ts";

export interface EngineOptions {
  botName: string;
  /** Where a channel has none of its own. */
  model: string;
  systemPrompt: string;
  /** The usual one for pictures; undefined: nothing is drawn. */
  imageModel: string | undefined;
  limits: EngineLimits;
  database: DatabaseSync;
  stores: Pick<Stores, "open">;
  gateway: Gateway;
  toTools(history: History): readonly Tool[];
  /** Makes pictures reachable for the gateway. */
  references: References;
  scheduler: Scheduler;
  adapterOf(platform: string): Adapter;
  pseudonym(platform: string, userId: string): string;
  metrics: Metrics;
  log: Logger;
  /** Pauses of the queue between attempts at failed work. */
  retryMs?: readonly [first: number, longest: number];
}

export interface EngineLimits {
  historyTtlMs: number;
  historyMaxMessages: number;
  historyMaxTokens: number;
  maxConcurrentTurns: number;
  maxReferences: number;
}

/** Everything between the platforms and the gateway: events go in, replies come out at their addresses. */
export interface Engine {
  accept: Accept;
  commands: readonly Command[];
  /** What `/model` offers. */
  listModels: ListModels;
  /** What the platforms' forms for pictures offer. */
  imagineMenu: ImagineMenu;
  readAbout: ReadAbout;
  eraseConversations: EraseConversations;
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
  const gateway = withOptionalPictures(withOptionalTools(options.gateway, log), log);
  const { model, imageModel, systemPrompt, scheduler, pseudonym, metrics } = options;
  const models = createModelLists({ gateway, chatModel: model, imageModel, log, now: Date.now });
  const jobs = createJobStore({ open: stores.open, ttlMs, log });
  const pictures = { jobs, history, listModels: models.images, model: imageModel, maxReferences: limits.maxReferences };
  const imagine = createImagine({ ...pictures, gateway, references: options.references, adapterOf, metrics, log });
  const tools = [
    ...options.toTools(history),
    ...(imageModel === undefined ? [] : [createGenerateImage({ ...pictures, imagine })]),
  ];
  const turn = { gateway, model, systemPrompt, tools, scheduler, pseudonym, metrics };
  const attempt = createAttempt({ ...turn, readContext, settings, history, records, adapterOf, log });
  const bringEarlier = createBringEarlier({ history, adapterOf, maxTokens: limits.historyMaxTokens, log });
  const answers = createAnswers({ records, history, adapterOf, attempt, bringEarlier, log });

  const eraseConversation = async ({ conversationId, reply: { platform }, author }: CommandEvent) => {
    const person = mayConfigure(author) ? undefined : { platform, id: author.id };
    const erased = await history.forgetConversation(conversationId, person);
    await records.erase(erased);
    await jobs.erase(erased);
    emptyLog(database);
    return erased.length;
  };
  const eraseAuthor = async ({ key, reply: { platform }, author }: CommandEvent) => {
    await queue.forget(platform, author.id, key);
    const count = await history.forgetAuthor(platform, author.id);
    await records.forget(platform, author.id);
    await imagine.forget(platform, author.id);
    await settings.forgetAuthor(platform, author.id);
    await adapterOf(platform).forget?.(author.id);
    emptyLog(database);
    return count;
  };
  const collect = async (platform: string, authorId: string) => ({
    ...(await history.exportAuthor(platform, authorId)),
    personas: await settings.exportAuthor(platform, authorId),
    pictures: await jobs.exportAuthor(platform, authorId),
    feedback: await records.readFeedback(platform, authorId),
  });
  const listModels = models.chat;
  const commands: Command[] = [
    createQuietCommand(history),
    createModelCommand({ settings, listModels, model }),
    createPersonaCommand(settings),
    createImagineCommand(imagine),
    createExportCommand(collect),
    createForgetCommand({ conversation: eraseConversation, everything: eraseAuthor }),
  ];
  commands.unshift(createHelpCommand(options.botName, commands));

  const rate = createRate({ records, metrics });
  metrics.observeQueue(queue.depth);
  const commandNames = commands.map(({ name }) => name);
  const accept = createAccept({ queue, history, answers, records, commandNames, log });
  return {
    accept,
    commands,
    listModels,
    imagineMenu: createImagineMenu(pictures),
    readAbout: createReadAbout({ history, settings, model }),
    eraseConversations: createEraseConversations({
      history,
      records,
      jobs,
      settings,
      emptyLog: () => emptyLog(database),
    }),
    history,
    records,
    queue,
    worker: createBot({ answers, history, commands, rate, imagine, accept, adapterOf, log }),
  };
}
