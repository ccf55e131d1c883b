import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import { type Acceptance, createAccept } from "../bot/accept.ts";
import { createBot } from "../bot/bot.ts";
import { createGate } from "../bot/gate.ts";
import { createTellOutage } from "../bot/outage-notice.ts";
import { createAccessCommand } from "../commands/access.ts";
import type { Command } from "../commands/command.ts";
import { createExportCommand } from "../commands/export.ts";
import { createForgetCommand } from "../commands/forget.ts";
import { createHelpCommand } from "../commands/help.ts";
import { createImagineCommand } from "../commands/imagine.ts";
import { createListenCommand } from "../commands/listen.ts";
import { createModelCommand } from "../commands/model.ts";
import { createPersonaCommand } from "../commands/persona.ts";
import { createQuietCommand } from "../commands/quiet.ts";
import { createQuotaCommand } from "../commands/quota.ts";
import { createStopCommand } from "../commands/stop.ts";
import { createToolsCommand, type ToolServer } from "../commands/tools.ts";
import { createUsageCommand } from "../commands/usage.ts";
import type { LimitsConfig } from "../config/config.ts";
import type { Policy } from "../config/policy/policy-file.ts";
import type { Gateway } from "../gateway/client.ts";
import { createHistory, type History } from "../history/history.ts";
import { createImagineModule } from "../imagine/module.ts";
import type { Insight } from "../insight/insight.ts";
import { NO_WATCH } from "../insight/turn-watch.ts";
import { createFiles, type Files } from "../media/files.ts";
import type { References } from "../media/reference.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { createModelLists } from "../models/model-list.ts";
import type { Scheduler } from "../pacing/scheduler.ts";
import { createReadAbout } from "../people/about.ts";
import { createEraseConversations, type EraseConversations } from "../people/conversation-erasure.ts";
import { createRate } from "../people/feedback.ts";
import { withLinkErasure } from "../people/link-erasure.ts";
import { createLooking } from "../people/looking.ts";
import { createPersonalData, type PersonalData } from "../people/personal-data.ts";
import { type Access, createAccess } from "../policy/access.ts";
import { type Audit, createAudit } from "../policy/audit.ts";
import { type ChatRules, createChatRules } from "../policy/chat-rules.ts";
import { createModels, type Models } from "../policy/models.ts";
import { createRefusals, type Refusals } from "../policy/refusals.ts";
import type { Adapter } from "../port/adapter.ts";
import type {
  FindTurn,
  ImagineMenu,
  IsListening,
  ListModels,
  Looking,
  ReadAbout,
  ReadPersona,
} from "../port/catalogue.ts";
import type { InboundEvent, ReplyAddress } from "../port/events.ts";
import { createEmbeddedQueue } from "../queue/embedded/embedded-queue.ts";
import type { Queue, Worker } from "../queue/queue.ts";
import type { SharedCalls } from "../queue/redis/calls.ts";
import { createRedisQueue } from "../queue/redis/redis-queue.ts";
import { createSplitQueue } from "../queue/split.ts";
import { createQuota, type Quota } from "../quota/quota.ts";
import { createPacedSinks } from "../reply/paced-sink.ts";
import { createSettings, type Settings } from "../settings/settings.ts";
import { emptyLog } from "../store/database.ts";
import type { Stores } from "../store/keyv.ts";
import { createLedger } from "../tools/ledger.ts";
import type { Tool } from "../tools/tool.ts";
import { createAnswers } from "../turn/answers.ts";
import { createAttempt } from "../turn/attempt.ts";
import { createReadChannelTalk } from "../turn/channel-talk.ts";
import { createReadContext, type ReadContext } from "../turn/context.ts";
import { createBringEarlier, createOverhear } from "../turn/earlier.ts";
import { createExplain } from "../turn/explain.ts";
import type { OutsideTools } from "../turn/outside-tools.ts";
import { createTurnRecords, TURNS, type TurnRecords } from "../turn/record.ts";
import { createSecondThoughts } from "../turn/second-thoughts.ts";
import { createUnkeptAnswers, type UnkeptAnswers } from "../turn/unkept.ts";
import { createWaitingMarks } from "../turn/waiting-marks.ts";
import { createUsage, type Usage } from "../usage/usage.ts";

export interface EngineOptions {
  botName: string;
  /** The answer to a question that is deleted goes with it; else a button offers that. */
  removesWithQuestion?: boolean;
  /** The model of channels that have none of their own. */
  model: string;
  systemPrompt: string;
  /** The usual one for pictures; undefined: nothing is drawn. */
  imageModel: string | undefined;
  limits: Omit<LimitsConfig, "shutdownGraceMs">;
  /** The policy file as it is now: asked at each decision, because it may change while the service runs. */
  policy(): Policy;
  database: DatabaseSync;
  stores: Pick<Stores, "open" | "now" | "shared" | "inTurn" | "counters">;
  gateway: Gateway;
  toTools(history: History, files: Files): readonly Tool[];
  /** Tools from outside, and the servers that they are of; absent: none. */
  outside?: Partial<Outside>;
  /** Makes pictures reachable for the gateway. */
  references: References;
  scheduler: Scheduler;
  /** Absent where no other process shares the limits of the platforms. */
  calls?: Pick<SharedCalls, "open">;
  adapterOf(platform: string): Adapter;
  pseudonym(platform: string, userId: string): string;
  metrics: Metrics;
  /** Hears of turns, for the dashboard; absent: nobody looks. */
  insight?: Pick<Insight, "turns" | "forgetAuthor" | "exportAuthor" | "eraseConversations"> | undefined;
  log: Logger;
  /** Platforms that serve several workspaces, see `SettingKeysOptions`. */
  severalWorkspaces?: ReadonlySet<string>;
  /** Pauses of the queue between attempts at failed work. */
  retryMs?: readonly [first: number, longest: number];
}

interface Outside extends OutsideTools {
  /** The servers of a place, or all of them. */
  report(place?: ReplyAddress): readonly (ToolServer & { problem?: string | undefined })[];
}

const NOTHING_OUTSIDE: Outside = {
  tried: async () => {},
  toolsOf: () => [],
  report: () => [],
  readPrompt: async () => undefined,
};

/** Everything between the platforms and the gateway: events go in, replies come out at their addresses. */
export interface Engine extends Acceptance {
  commands: readonly Command[];
  /** Lists the models that `/model` offers. */
  listModels: ListModels;
  /** The choices in the platforms' forms for pictures. */
  imagineMenu: ImagineMenu;
  readAbout: ReadAbout;
  findTurn: FindTurn;
  isListening: IsListening;
  readPersona: ReadPersona;
  /** How every server of outside tools is doing in this process. */
  toolReports(): ReturnType<Outside["report"]>;
  looking: Looking;
  eraseConversations: EraseConversations;
  people: PersonalData;
  history: History;
  records: TurnRecords;
  settings: Settings;
  usage: Usage;
  audit: Audit;
  access: Access;
  chatRules: ChatRules;
  queue: Queue;
  /** Carries out accepted events: the queue is started with it. */
  worker: Worker;
}

/** Puts the engine together. Nothing is worked on before the queue is started. */
export function createEngine(options: EngineOptions): Engine {
  const { database, stores, limits, adapterOf, log, severalWorkspaces, insight } = options;
  const ttlMs = limits.historyTtlMs;
  const kept = { open: stores.open, inTurn: stores.inTurn, ttlMs, log };
  const said = createHistory({ ...kept, now: Date.now, clock: stores.now });
  const history = withLinkErasure(said, options.references);
  const records = createTurnRecords(kept);
  const settings = createSettings({ ...kept, severalWorkspaces });
  const rights = openRights(options);
  const { access, audit } = rights;
  const queue = createQueue(options);
  const files = createFiles(async (ref, signal) => adapterOf(ref.platform).openAttachment(ref, signal));
  const readContext = openContext(options, history, files);
  const { gateway, model, imageModel, systemPrompt, scheduler, pseudonym, metrics } = options;
  const lists = createModelLists({ gateway, chatModel: model, imageModel, log, now: Date.now });
  const { usage, quota } = openCounting(options);
  const models = createModels({ policy: options.policy, model, readScarcestLimit: quota.readScarcest });
  const sinkOf = createPacedSinks({ adapterOf, scheduler, metrics });
  const drawn = { stores, ttlMs, history, gateway, adapterOf, sinkOf, quota, access, metrics, log };
  const pictures = createImagineModule({
    ...drawn,
    references: options.references,
    listModels: lists.images,
    model: imageModel,
    maxReferences: limits.maxReferences,
    onProgress: queue.progressed,
  });
  const { jobs, imagine } = pictures;
  const tools = [...options.toTools(history, files), ...pictures.tools];
  const outside = { ...NOTHING_OUTSIDE, ...options.outside };
  const ledger = createLedger({ keyv: stores.open(TURNS), allowed: stores.open(`${TURNS}:allowed`), ttlMs });
  const turn = { gateway, model, models, systemPrompt, tools, outside, scheduler, pseudonym, metrics, usage, quota };
  const onProgress = queue.progressed;
  const watch = insight?.turns ?? NO_WATCH;
  const unkept = createUnkeptAnswers({ database, history, records, log });
  const answered = { history, records, ledger, unkept, adapterOf, log };
  const { contextMessages } = limits;
  const seen = { readContext, contextMessages, settings, access, watch, onProgress };
  const attempt = createAttempt({ ...turn, ...answered, ...seen, showPicture: imagine.show });
  const bringEarlier = createBringEarlier(answered);
  const overhear = createOverhear(history, log);
  const waiting = createWaitingMarks({ open: stores.open, adapterOf, log });
  const answers = createAnswers({ ...answered, sinkOf, attempt, bringEarlier, overhear, waiting, watch });
  const explain = createExplain({ records, history, settings });
  const { removesWithQuestion = false } = options;
  const secondThoughts = createSecondThoughts({ ...answered, sinkOf, scheduler, removesWithQuestion });

  const looking = createLooking({ ...kept, now: stores.now });
  const kinds = { history, records, ledger, jobs, imagine, settings, usage, audit, looking, insight };
  const data = { ...kinds, eraseCopies: () => eraseCopies(files, database) };
  const people = createPersonalData({ ...data, queue, adapterOf });
  const listModels = lists.chat;
  const offered = { toolNames: tools.map(({ name }) => name), serversOf: outside.report };
  const told = { ...kinds, ...offered, ...rights, botName: options.botName, listModels, models, quota };
  const commands = createCommands({ ...told, ...people, adapterOf });

  const gate = createGate({ ...rights, quota, records, jobs, settings, models, adapterOf, sinkOf, log });
  const rate = createRate({ records, metrics });
  observeWork(metrics, queue, unkept);
  const commandNames = commands.map(({ name }) => name);
  const worked = { answers, secondThoughts, explain, waiting, history, commands, rate, imagine };
  const tellOutage = createTellOutage({ adapterOf, log });
  const acceptance = createAccept({ queue, history, answers, records, commandNames, tellOutage, metrics, log });
  return {
    ...acceptance,
    commands,
    listModels,
    imagineMenu: pictures.menu,
    readAbout: createReadAbout({ history, settings, usage, model }),
    findTurn: records.turnOf,
    isListening: settings.isListening,
    readPersona: settings.read,
    toolReports: () => outside.report(),
    looking,
    eraseConversations: createEraseConversations(data),
    people,
    history,
    records,
    settings,
    usage,
    ...rights,
    queue,
    worker: createBot({ ...worked, accept: acceptance.accept, gate, sinkOf, tellOutage, metrics, log }),
  };
}

function observeWork(metrics: Metrics, queue: Queue, unkept: Pick<UnkeptAnswers, "count">): void {
  metrics.observe("queue_waiting", () => queue.depth().waiting);
  metrics.observe("queue_active", () => queue.depth().active);
  metrics.observe("unkept_answers", unkept.count);
}

function eraseCopies(files: Files, database: DatabaseSync): void {
  files.clear();
  emptyLog(database);
}

interface CommandsDeps extends Pick<Engine, "history" | "usage" | "listModels">, Rights, PersonalData {
  adapterOf: EngineOptions["adapterOf"];
  botName: string;
  settings: Settings;
  models: Models;
  imagine: Parameters<typeof createImagineCommand>[0];
  toolNames: readonly string[];
  serversOf: Outside["report"];
  quota: Quota;
}

/** The words that people give the bot, on every platform. */
function createCommands({ botName, history, settings, access, audit, chatRules, ...deps }: CommandsDeps): Command[] {
  const { listModels, models, imagine, toolNames, serversOf, usage, collect, erasers, quota } = deps;
  const commands: Command[] = [
    createStopCommand(),
    createQuietCommand(history, audit),
    createListenCommand({ settings, access, audit }),
    createModelCommand({ settings, listModels, models, access, audit }),
    createPersonaCommand({ settings, access, audit }),
    createImagineCommand(imagine),
    createAccessCommand({ access, audit, chatRules, adapterOf: deps.adapterOf }),
    createToolsCommand({ own: toolNames, serversOf, settings, access, audit }),
    createUsageCommand({ usage, access }),
    createQuotaCommand({ quota, usage, access, audit, now: Date.now }),
    createExportCommand({ collect, access, audit }),
    createForgetCommand({ erase: erasers, access, audit }),
  ];
  commands.unshift(createHelpCommand(botName, commands, settings.read));
  return commands;
}

function openCounting({ stores, severalWorkspaces, policy, pseudonym, log }: EngineOptions) {
  const common = { counters: stores.counters, now: Date.now, log };
  const usage = createUsage({ ...common, open: stores.open, severalWorkspaces });
  return { usage, quota: createQuota({ ...common, policy, usage, pseudonym }) };
}

/** Permissions, the rules behind them, and the record of changes and refusals. */
function openRights({ policy, stores, pseudonym, log }: EngineOptions): Rights {
  const kept = { open: stores.open, inTurn: stores.inTurn, log };
  const chatRules = createChatRules({ ...kept, now: () => performance.now() });
  const audit = createAudit({ ...kept, pseudonym, now: Date.now });
  return { chatRules, audit, refusals: createRefusals(kept), access: createAccess({ policy, chatRules }) };
}

interface Rights {
  access: Access;
  audit: Audit;
  chatRules: ChatRules;
  refusals: Refusals;
}

function openContext({ limits, adapterOf, log }: EngineOptions, history: History, files: Files): ReadContext {
  return createReadContext({
    history,
    readChannelTalk: createReadChannelTalk({ history, adapterOf, log }),
    maxEntries: limits.historyMaxMessages,
    maxTokens: limits.historyMaxTokens,
    files,
    log,
  });
}

/** On a Redis that processes share, they share the work too, except what is shown by one of them alone. */
function createQueue({ database, stores, limits, adapterOf, calls, metrics, log, retryMs }: EngineOptions): Queue {
  const common = { maxActive: limits.maxConcurrentTurns, log, retryMs };
  const own = createEmbeddedQueue({ database, ...common });
  if (stores.shared === undefined) return own;
  const open = calls && { openBudget: calls.open };
  /** Everything written under one key shares one rate limit of the platform. */
  const budgetOf = ({ reply }: InboundEvent) => adapterOf(reply.platform).sink(reply).budget.key;
  const told = { budgetOf, ...open, onTakenOver: metrics.takenOver };
  const shared = createRedisQueue({ connection: stores.shared, now: stores.now, ...told, ...common });
  return createSplitQueue(own, shared, ({ reply }) => adapterOf(reply.platform).isOwn === true);
}
