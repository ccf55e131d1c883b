import { type Bot, createBot } from "../bot/bot.ts";
import type { ToolServer } from "../commands/command.ts";
import { COMMANDS, createCommands } from "../commands/commands.ts";
import { createFindPicture } from "../imagine/find-picture.ts";
import { createGenerateImage } from "../imagine/generate-image.ts";
import { createImagine } from "../imagine/imagine.ts";
import { createImagineMenu } from "../imagine/menu.ts";
import { createFindRefusal } from "../imagine/new-turn.ts";
import { createPictureFiles, type KeptFiles } from "../imagine/picture-files.ts";
import { createPictureLine, type PictureLine } from "../imagine/waiting.ts";
import { createReadAbout } from "../people/about.ts";
import { createEraseConversations, type EraseConversations } from "../people/conversation-erasure.ts";
import { createLooking } from "../people/looking.ts";
import { createPersonalData, type PersonalData } from "../people/personal-data.ts";
import type {
  CommandHelp,
  FindTurn,
  ImagineMenu,
  IsListening,
  ListModels,
  Looking,
  ReadAbout,
  ReadPersona,
  ScheduleForm,
} from "../port/catalogue.ts";
import type { ReplyAddress } from "../port/events.ts";
import type { Right } from "../port/right.ts";
import { type Alarm, createAlarm } from "../schedules/alarm.ts";
import { createPlanner } from "../schedules/planner.ts";
import { createSchedules, type Schedules } from "../schedules/schedules.ts";
import { createScheduleTool } from "../schedules/tool.ts";
import type { Base, Services } from "../services/services.ts";
import { createLedger } from "../tools/ledger.ts";
import type { Tool } from "../tools/tool.ts";
import { createAfterTheEnd } from "../turn/after-the-end.ts";
import type { ShowPicture } from "../turn/answer-pictures.ts";
import { createAnswers } from "../turn/answers.ts";
import { createAttempt } from "../turn/attempt.ts";
import { createBringEarlier, createOverhear, createReadChannelTalk, createReadContext } from "../turn/context.ts";
import { createLateWrites, type LateWrites } from "../turn/late-writes.ts";
import type { OutsideTools } from "../turn/prepare.ts";
import { createTurnRecords, TURNS, type TurnRecords } from "../turn/records.ts";
import { createRunningTurns, type RunningTurns } from "../turn/running.ts";
import { createExplain } from "../turn/trace.ts";
import { createWaitingMarks, type WaitingMarks } from "../turn/waiting-marks.ts";
import { createQueue, type RetryPauses } from "./queue.ts";
import { createServices, servicesUnder } from "./services.ts";

export interface EngineOptions extends Base {
  /** If true, an answer is deleted together with its question. Otherwise a button offers to delete the answer. */
  removesWithQuestion?: boolean;
  toTools(services: Services): readonly Tool[];
  /** MCP servers and their tools; absent: none. */
  outside?: Partial<Outside>;
  retryMs?: RetryPauses;
}

interface Outside extends OutsideTools {
  /** Reports the servers of a channel, or all servers if `place` is absent. */
  report(place?: ReplyAddress): readonly (ToolServer & { problem?: string | undefined })[];
}

const NOTHING_OUTSIDE: Outside = {
  tried: async () => {},
  toolsOf: () => [],
  report: () => [],
  readPrompt: async () => undefined,
};

/** Everything between the platforms and the gateway: it handles events and writes replies. */
export interface Engine extends Services, Bot {
  commands: readonly CommandHelp[];
  listModels: ListModels;
  /** The choices in the platforms' image forms. */
  imagineMenu: ImagineMenu;
  readAbout: ReadAbout;
  findTurn: FindTurn;
  isListening: IsListening;
  readPersona: ReadPersona;
  scheduleForm: ScheduleForm;
  /** The state of every MCP server in this process. */
  toolReports(): ReturnType<Outside["report"]>;
  looking: Looking;
  eraseConversations: EraseConversations;
  people: PersonalData;
  records: TurnRecords;
  schedules: Schedules;
  alarm: Alarm;
}

/** Creates all parts of the engine. Nothing runs until the queue starts. */
export function createEngine({ retryMs, ...options }: EngineOptions): Engine {
  const services = createServices(options, createQueue(options, retryMs));
  const { stores, settings, modelLists, queue, metrics } = services;
  const outside = { ...NOTHING_OUTSIDE, ...options.outside };
  const kept = openRecords(services);
  const shared: Shared = {
    turns: createRunningTurns(),
    line: createPictureLine(),
    lateWrites: createLateWrites({ ...services, ...kept }),
    waiting: createWaitingMarks({ ...services, open: stores.open }),
  };
  const parts = createParts({ ...options, outside }, shared);
  const own = parts(services, kept);
  const { records, imagine, looking, people } = own;
  metrics.observe("unkept_answers", shared.lateWrites.count);
  metrics.observe("queue_waiting", () => queue.depth().waiting);
  metrics.observe("queue_active", () => queue.depth().active);
  const under = (right: Right) => {
    const bound = servicesUnder(services, right);
    return parts(bound, openRecords(bound));
  };
  return {
    ...services,
    ...createBot(own, under),
    commands: COMMANDS,
    listModels: modelLists.chat,
    imagineMenu: own.imagineMenu,
    readAbout: createReadAbout(services),
    findTurn: records.turnOf,
    isListening: settings.isListening,
    readPersona: settings.read,
    scheduleForm: own.planner.form,
    toolReports: () => outside.report(),
    looking,
    eraseConversations: createEraseConversations({ ...services, records, imagine, looking, schedules: own.schedules }),
    people,
    records,
    schedules: own.schedules,
    // Without shared storage, schedules follow the system's clock, even if someone changes it.
    alarm: createAlarm({ ...own, clock: stores.shared === undefined ? services.now : stores.now }),
  };
}

interface Shared {
  turns: RunningTurns;
  line: PictureLine;
  lateWrites: LateWrites;
  waiting: WaitingMarks;
}

interface Kept {
  files: KeptFiles;
  records: TurnRecords;
}

function openRecords({ stores, limits, adapterOf, references, log }: Services): Kept {
  const kept = { open: stores.open, inTurn: stores.inTurn, ttlMs: limits.historyTtlMs, log };
  const files = createPictureFiles({ ...kept, adapterOf, links: references });
  return { files, records: createTurnRecords({ ...kept, files }) };
}

interface PartsOptions extends Pick<EngineOptions, "toTools" | "removesWithQuestion"> {
  outside: Outside;
}

/**
 * Returns a function that creates everything that handles events. The engine calls it once for each piece of work,
 * because each has its own right to write.
 */
function createParts({ toTools, outside, removesWithQuestion }: PartsOptions, shared: Shared) {
  return (services: Services, kept: Kept) => {
    const { stores, log } = services;
    const { records } = kept;
    const { imagine, imagineMenu, drawingTools } = createPictures(services, { ...shared, ...kept });
    const schedules = createSchedules({ ...services, open: stores.open, inTurn: stores.inTurn });
    const planner = createPlanner({ ...services, schedules });
    const tools = [...toTools(services), ...drawingTools, createScheduleTool({ ...services, planner })];
    const answering = createAnswering(services, {
      ...shared,
      records,
      tools,
      outside,
      showPicture: imagine.show,
    });
    const looking = createLooking({ open: stores.open, inTurn: stores.inTurn, now: stores.now, log });
    const people = createPersonalData({ ...services, records, imagine, looking, schedules });
    const toolNames = tools.map(({ name }) => name);
    const commands = createCommands({ ...services, people, planner, toolNames, serversOf: outside.report });
    const own = { removesWithQuestion: removesWithQuestion === true, records, imagine, imagineMenu, looking };
    return { ...services, ...shared, ...answering, ...own, schedules, planner, people, commands };
  };
}

function createPictures(services: Services, given: Shared & Kept) {
  const { access, history, imageModel, modelLists, queue } = services;
  const { maxReferences } = services.limits;
  const found = createFindPicture(given.records, given.turns);
  const pictures = { ...found, listModels: modelLists.images, maxReferences, findRefusal: createFindRefusal(access) };
  const onProgress = queue.progressed;
  const imagine = createImagine({ ...services, ...given, ...pictures, onProgress, model: imageModel });
  const drawingTools = imageModel === undefined ? [] : [createGenerateImage({ imagine, history, maxReferences })];
  return { imagine, imagineMenu: createImagineMenu(pictures), drawingTools };
}

interface Answering extends Shared {
  records: TurnRecords;
  tools: readonly Tool[];
  outside: Outside;
  showPicture: ShowPicture;
}

function createAnswering(services: Services, given: Answering) {
  const { stores, limits, history, log } = services;
  const ledgerOptions = { keyv: stores.open(TURNS), allowed: stores.open(`${TURNS}:allowed`) };
  const ledger = createLedger({ ...ledgerOptions, ttlMs: limits.historyTtlMs });
  const turn = { ...services, ...given, ledger };
  const readContext = createReadContext({
    ...services,
    readChannelTalk: createReadChannelTalk(services),
    maxEntries: limits.historyMaxMessages,
    maxTokens: limits.historyMaxTokens,
  });
  const attempt = createAttempt({ ...turn, readContext });
  const bringEarlier = createBringEarlier(turn);
  const overhear = createOverhear(history, log);
  return {
    ledger,
    answers: createAnswers({ ...turn, attempt, bringEarlier, overhear }),
    explain: createExplain(turn),
    afterTheEnd: createAfterTheEnd(turn),
  };
}
