import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { createHistory, type History } from "../../src/history/history.ts";
import { createHistoryKeys, type HistoryKeys } from "../../src/history/keys.ts";
import type { HistoryEntry } from "../../src/history/record.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { startSandbox } from "../../src/sandbox/server.ts";
import { createSchedules } from "../../src/schedules/schedules.ts";
import { createStores, type Stores } from "../../src/store/keyv.ts";
import type { TurnRecord } from "../../src/turn/record.ts";
import { createUsage } from "../../src/usage/usage.ts";
import { createRandom } from "../pacing/random.ts";
import { silent } from "../support/log.ts";
import { lookFor } from "../support/look-for.ts";
import { startRedis } from "../support/redis.ts";
import { makeDataDir } from "../support/service.ts";
import { namesIn, unedited } from "./answers.ts";
import { type Cluster, startCluster } from "./cluster.ts";
import { DASHBOARD_ENV, readBoard } from "./dashboard.ts";
import { openDiscordStage } from "./discord-stage.ts";
import { ANY_TURN, type Place, type Question, type Shown } from "./place.ts";
import type { Doing, FaultKind, Plan, PlannedFault, PlannedQuestion, PlannedRun } from "./plan.ts";
import type { AskedQuestion, Disturbance, Note, Record } from "./record.ts";
import { openShop } from "./shop.ts";
import { openSlackStage } from "./slack-stage.ts";
import type { QuestionDelivery, Stage } from "./stage.ts";
import { openUpstream } from "./upstream.ts";

const REDIS_SECRET = "canary-of-redis";
const GATEWAY_SECRET = "canary-of-the-gateway";
/** Maximum time that a person waits for a button to appear. */
const LOOK_MS = 5_000;
/** Longer than the service's timeout for a silent upstream and than the minute of a rate limit. */
const REST_MS = 75_000;
/** The run ends when nothing has changed for this long. */
const QUIET_MS = 2_500;
/** Interval between checks for open work. Each check costs every process 3 ms. */
const STEP_MS = 1_000;
const DAY_MS = 86_400_000;
/** Quotas that no run reaches: the bot reserves quota for each request but refuses none. */
const POLICY = { quotas: { person: { day: { tokens: 1e9, requests: 1e6 } }, all: { month: { requests: 1e6 } } } };

export interface RunOptions {
  /** URLs of modules that every process of the service loads first. */
  preload?: readonly string[];
  /** If nothing changes for this long, the run ends, even if work is unfinished. */
  restMs?: number;
  /** If true, the processes log at `debug`. */
  hasDetails?: boolean;
  onNote?(note: Note): void;
}

/** Runs a plan with real processes until nothing changes. Resolves to the record of the run. */
export async function runPlan(
  plan: Plan,
  { preload = [], restMs = REST_MS, hasDetails = false, onNote }: RunOptions = {},
): Promise<Record> {
  await using resources = new AsyncDisposableStack();
  const notes: Note[] = [];
  const note = (what: string) => {
    const one = { atMs: Date.now(), what };
    notes.push(one);
    onNote?.(one);
  };
  const stage = await (plan.platform === "slack" ? openSlackStage : openDiscordStage)(plan);
  resources.defer(stage.close);
  const sandbox = await startSandbox({ host: "127.0.0.1", port: 0, log: silent, tokensPerSecond: Infinity });
  resources.defer(sandbox.close);
  const shop = await openShop();
  resources.defer(shop.close);
  const upstream = await openUpstream({ elsewhere: { url: sandbox.url, key: "sk-sandbox-all" } });
  resources.defer(upstream.close);
  const redis = plan.isAlone ? undefined : await startRedis({ isKept: true, password: REDIS_SECRET });
  resources.defer(() => redis?.stop());
  const folder = await makeDataDir();
  resources.defer(folder.remove);
  const policyPath = join(folder.path, "policy.json");
  await writeFile(policyPath, JSON.stringify(POLICY));
  const mcpPath = join(folder.path, "mcp.json");
  await writeFile(mcpPath, JSON.stringify({ mcpServers: { [shop.name]: { url: shop.url, approve: "never" } } }));
  const cluster = await startCluster({
    roles: plan.roles,
    aheadMs: plan.aheadMs,
    platformOrigin: stage.origin,
    gatewayUrl: upstream.url,
    redisUrl: redis?.url,
    env: (origin) => ({
      ...stage.env(origin),
      GATEWAY_API_KEY: GATEWAY_SECRET,
      CHAT_MODEL: "scripted",
      IMAGE_MODEL: "sandbox-image",
      POLICY_FILE: policyPath,
      MCP_CONFIG: mcpPath,
      // Large enough that the model gets every message.
      HISTORY_MAX_MESSAGES: "1000",
      HISTORY_MAX_TOKENS: "1000000",
      MAX_CONCURRENT_TURNS: "64",
      // The shutdown itself needs seven seconds.
      SHUTDOWN_GRACE_SECONDS: "9",
      ...DASHBOARD_ENV,
      ...(hasDetails && { LOG_LEVEL: "debug" }),
    }),
    preload,
    note,
  });
  resources.defer(cluster.close);
  for (const { name, script } of plan.questions) upstream.script(name, script);
  const script: Script = {
    plan,
    stage,
    cluster,
    note,
    questions: [],
    removed: new Set(),
    restarted: new Set(),
    deletedAnswers: new Set(),
    lostPlaces: new Set(),
  };
  const disturbances: Disturbance[] = [];
  const commands = new Map<string, () => string | undefined>();

  await stage.install(await cluster.ready());
  const startMs = Date.now();
  const runs = openRuns(redis?.url, resources);
  for (const planned of plan.runs) {
    const question = await runs.plan(planned, stage.places[planned.place]?.lasting, startMs);
    if (question !== undefined) script.questions.push(question);
  }
  note("the run starts");
  const until = (atMs: number) => sleep(Math.max(0, startMs + atMs - Date.now()));
  await Promise.all([
    ...plan.questions.map((question) => until(question.atMs).then(() => ask(script, question))),
    ...plan.pictures.map(async ({ atMs, place, name }) => {
      await until(atMs);
      note(`a person requests an image of ${name}`);
      commands.set(name, stage.draw(place, name));
    }),
    ...plan.faults.map(async (fault) => {
      await until(fault.atMs);
      for (const step of toSteps(fault, plan)) {
        const disturbance = { ...toTarget(step, plan, stage), fromMs: Date.now(), toMs: Number.POSITIVE_INFINITY };
        disturbances.push(disturbance);
        await cause(script, step, redis);
        disturbance.toMs = Date.now();
      }
    }),
  ]);
  note("the plan is carried out");
  const open = await settle(script, restMs, runs.readOpen);
  note("nothing changes any longer");
  const board = await readBoard(await cluster.ready());
  const { turns, histories, counted } = await readStores(redis?.url, cluster.dataDir(0));
  const lost = [...script.lostPlaces].flatMap((place) => stage.places[place]?.shown() ?? []);
  const lostIds = new Set(lost.map(({ id }) => id));
  const cutOff = script.questions.filter(({ place }) => script.lostPlaces.has(place));
  return {
    plan,
    notes: notes.toSorted((a, b) => a.atMs - b.atMs),
    lives: cluster.lives,
    disturbances,
    questions: script.questions,
    replies: new Map([...commands].flatMap(([name, readReply]) => toReply(name, readReply()))),
    removed: script.removed,
    restarted: script.restarted,
    deletedAnswers: script.deletedAnswers,
    cutOff: new Set(cutOff.map(({ id }) => id)),
    deliveryOf: (question) => (runs.isOf(question) ? ACCEPTED : stage.deliveryOf(question)),
    requestsFor: upstream.requestsFor,
    shown: stage.shown().filter(({ id }) => !lostIds.has(id)),
    calls: stage.calls(),
    breaks: stage.breaks(),
    turns,
    histories,
    counted,
    board,
    acts: shop.marks,
    open,
    secrets: [REDIS_SECRET, GATEWAY_SECRET, ...Object.values(DASHBOARD_ENV), ...stage.secrets],
  };
}

function toReply(name: string, reply: string | undefined): Array<[name: string, reply: string]> {
  return reply === undefined ? [] : [[name, reply]];
}

interface Script {
  plan: Plan;
  stage: Stage;
  cluster: Cluster;
  note(what: string): void;
  questions: AskedQuestion[];
  removed: Set<string>;
  restarted: Set<string>;
  deletedAnswers: Set<string>;
  /** Indexes of the places that had a fault which disturbs answers. */
  lostPlaces: Set<number>;
}

async function ask(script: Script, planned: PlannedQuestion): Promise<void> {
  const { stage, questions, note } = script;
  const place = stage.places[planned.place];
  if (place === undefined) return;
  note(`person ${planned.person} asks ${planned.name}`);
  const question = { ...place.ask(planned.name, planned.person), place: planned.place, askedAtMs: Date.now() };
  questions.push(question);
  if (planned.doing === undefined) return;
  await sleep(planned.doing.afterMs);
  await act(script, question, planned.doing.what);
}

async function act(script: Script, question: Question & { place: number }, what: Doing): Promise<void> {
  const { plan, stage, questions, removed, restarted, deletedAnswers, note } = script;
  const place = stage.places[question.place];
  if (place === undefined) return;
  switch (what) {
    case "edit":
      note(`${question.name} is edited`);
      restarted.add(question.id);
      return place.edit(question, `${question.name}e`);
    case "remove":
      note(`${question.name} is deleted`);
      removed.add(question.id);
      return place.remove(question);
    case "follow":
      note(`person ${question.person} asks ${question.name}00`);
      questions.push({
        ...place.ask(`${question.name}00`, question.person),
        place: question.place,
        askedAtMs: Date.now(),
      });
      return;
    case "remove-answer": {
      const isPicture = ({ text }: Shown) => plan.pictures.some((picture) => text.includes(picture.name));
      const message = place.shown().find((one) => !isPicture(one));
      if (message === undefined) return;
      note(`${message.id} is deleted`);
      deletedAnswers.add(message.id);
      return place.removeShown(message.id);
    }
    case "stop":
      return press(script, question, "Stop");
    case "retry":
      return press(script, question, "Retry");
    case "retry-twice":
      await press(script, question, "Retry");
      return press(script, question, "Retry");
  }
}

/** Presses a button of a question's answer as soon as the button appears. Gives up after `LOOK_MS`. */
async function press(
  { stage, questions, restarted, note }: Script,
  question: Question & { place: number },
  label: string,
) {
  const place = stage.places[question.place];
  // The name at the end of a growing text can be incomplete. The underscore prevents a match with such a name.
  const namesOf = ({ text }: Shown) => namesIn(`${text}_`).map(unedited);
  const isAnswer = (message: Shown) =>
    namesOf(message).includes(question.name) &&
    message.buttons.some((button) => button.label === label || button.payload === ANY_TURN);
  const message = await lookFor(() => place?.shown().find(isAnswer), LOOK_MS);
  if (message === undefined) return;
  note(`person ${question.person} presses ${label} on ${question.name}`);
  // The message can answer other questions too.
  const answered = questions.filter(({ name }) => namesOf(message).includes(name));
  if (label === "Retry") for (const { id } of answered) restarted.add(id);
  try {
    place?.press(message.id, label, question.person);
  } catch {
    // The button disappeared between the check and the press.
  }
}

/** Splits a planned fault into single faults. */
function toSteps(fault: PlannedFault, { roles }: Plan): PlannedFault[] {
  if (fault.kind !== "roll") return [fault];
  return roles.map((_, slot) => ({ ...fault, kind: "end", share: slot / roles.length }));
}

const WITHOUT_PROCESS: ReadonlySet<FaultKind> = new Set(["redis-kill", "redis-freeze", "platform"]);

function toTarget({ kind, share }: PlannedFault, { roles }: Plan, { troubles }: Stage) {
  const trouble = kind === "platform" ? troubles[Math.floor(share * troubles.length)] : undefined;
  const slot = WITHOUT_PROCESS.has(kind) ? undefined : Math.floor(share * roles.length);
  return { kind, slot, ...(trouble !== undefined && { trouble }) };
}

type Redis = Awaited<ReturnType<typeof startRedis>> | undefined;

const SLOW_MS = 150;

/** Starts a fault, waits, and ends the fault unless it ends by itself. */
async function cause(script: Script, fault: PlannedFault, redis: Redis): Promise<void> {
  const { plan, stage, cluster, note } = script;
  const { kind, lastsMs } = fault;
  const { slot = 0, trouble = "" } = toTarget(fault, plan, stage);
  switch (kind) {
    case "kill":
      return cluster.end(slot, "SIGKILL", lastsMs);
    case "end":
    case "roll":
      return cluster.end(slot, "SIGTERM", lastsMs);
    case "stop":
      cluster.stop(slot);
      await sleep(lastsMs);
      return cluster.resume(slot);
    case "redis-kill":
      note("Redis is killed");
      await redis?.kill();
      await sleep(lastsMs);
      await redis?.restart();
      return note("Redis is back");
    case "redis-freeze":
      note("Redis freezes");
      redis?.freeze();
      await sleep(lastsMs);
      redis?.thaw();
      return note("Redis resumes");
    case "redis-slow":
      note(`Redis is slow for process ${slot + 1}`);
      cluster.slowRedis(slot, SLOW_MS);
      await sleep(lastsMs);
      cluster.slowRedis(slot, 0);
      return note(`Redis is fast again for process ${slot + 1}`);
    case "redis-cut":
      note(`process ${slot + 1} is disconnected from Redis`);
      return cluster.disconnectRedis(slot);
    case "platform": {
      if (stage.disturbing.has(trouble)) {
        // The bot cannot lose a direct conversation.
        if (plan.places[fault.place] === "direct") return;
        script.lostPlaces.add(fault.place);
      }
      note(`the platform has a fault: ${trouble}`);
      const endFault = stage.places[fault.place]?.inflict(trouble, createRandom(Math.floor(fault.atMs)));
      if (endFault === undefined) return;
      await sleep(lastsMs);
      note(`the platform's fault is over: ${trouble}`);
      return endFault();
    }
  }
}

/** Waits until nothing is open, or until nothing changes for `restMs`. Resolves to what is still open. */
async function settle(
  { stage, cluster }: Script,
  restMs: number,
  readRuns: () => Promise<string[]>,
): Promise<Record["open"]> {
  let before = "";
  let changedAtMs = Date.now();
  for (;;) {
    const [events, runs] = await Promise.all([cluster.countOpen(), readRuns()]);
    const shown = stage.shown();
    const state = JSON.stringify([events, runs, stage.calls().length, shown.length, stage.isSettled()]);
    if (state !== before) changedAtMs = Date.now();
    before = state;
    const quietMs = Date.now() - changedAtMs;
    const isDone = events === 0 && runs.length === 0 && stage.isSettled() && shown.every(({ isGrowing }) => !isGrowing);
    if ((isDone && quietMs > QUIET_MS) || quietMs > restMs) return { events: events ?? 0, runs };
    await sleep(STEP_MS);
  }
}

/** Reads all entries of a conversation, because the bot's own reader follows only the branch of the last answer. */
async function readWhole(keys: HistoryKeys, conversationId: string): Promise<HistoryEntry[]> {
  const { first = 0, last = -1 } = (await keys.readHead(conversationId)) ?? {};
  const places = Array.from({ length: last - first + 1 }, (_, offset) => ({ conversationId, seq: first + offset }));
  return (await keys.readEntries(places)).flatMap((stored) => stored?.entry ?? []);
}

async function readTurns(stores: Stores): Promise<TurnRecord[]> {
  const turns: TurnRecord[] = [];
  const iterator = stores.open("turns").iterator?.(undefined) as AsyncIterable<[string, unknown]> | undefined;
  for await (const [, record] of iterator ?? []) if (isTurn(record)) turns.push(record);
  return turns;
}

function isTurn(value: unknown): value is TurnRecord {
  if (typeof value !== "object" || value === null || "parts" in value) return false;
  return "messageIds" in value && "posted" in value;
}

/** The delivery of a scheduled run. The platform does not deliver scheduled runs. */
const ACCEPTED: QuestionDelivery = { deliveredAtMs: undefined, acknowledgedAtMs: undefined, isGivenUp: false };

/** Stores scheduled runs for the processes, as if people had confirmed them earlier. */
function openRuns(redisUrl: string | undefined, resources: AsyncDisposableStack) {
  const ids = new Set<string>();
  const database = resources.adopt(new DatabaseSync(":memory:"), (one) => one.close());
  const stores = resources.adopt(createStores({ redisUrl, database, log: silent }, NO_RIGHT), (one) => one.close());
  const schedules = createSchedules({ ...stores, log: silent, now: Date.now });
  return {
    isOf: ({ id }: Pick<Question, "id">) => ids.has(id),
    /** Resolves to descriptions of the scheduled runs, or to [] if Redis is unavailable. */
    readOpen: () =>
      schedules.list().then(
        (all) => all.map(({ id, state, next, last, failures }) => JSON.stringify({ id, state, next, last, failures })),
        () => [],
      ),
    async plan(
      { name, place, person, atMs }: PlannedRun,
      lasting: Place["lasting"] | undefined,
      startMs: number,
    ): Promise<AskedQuestion | undefined> {
      if (lasting === undefined) return undefined;
      const dueAt = Math.ceil((startMs + atMs) / 1_000) * 1_000;
      const pattern = new Date(dueAt).toISOString().replace(".000", "");
      // Schedules appear in logs by their ids, so an id must not contain a person's words.
      const scheduleId = `run${name.replace(/\D+/g, "-")}`;
      const when = { time: pattern, task: name, pattern, zone: "UTC", madeAt: startMs, next: dueAt };
      await schedules.change(scheduleId, () => ({
        v: 1,
        id: scheduleId,
        state: "active",
        failures: 0,
        ...when,
        ...lasting,
      }));
      const id = `${lasting.reply.platform}:schedule:${scheduleId}:${dueAt}`;
      ids.add(id);
      return { id, name, person, place, askedAtMs: dueAt, isScheduled: true };
    },
  };
}

async function readStores(redisUrl: string | undefined, dataDir: string) {
  const database = new DatabaseSync(redisUrl === undefined ? join(dataDir, "palaver.sqlite") : ":memory:");
  const stores: Stores = createStores({ redisUrl, database, log: silent }, NO_RIGHT);
  try {
    const history: History = createHistory({ ...stores, ttlMs: DAY_MS, log: silent, now: Date.now });
    const keys = createHistoryKeys(stores.open, DAY_MS, silent);
    const histories = new Map<string, HistoryEntry[]>();
    for await (const id of history.conversations("")) histories.set(id, await readWhole(keys, id));
    const usage = createUsage({ counters: stores.counters, log: silent, now: Date.now });
    const { requests: counted } = await usage.readMonth("everyone");
    return { turns: await readTurns(stores), histories, counted };
  } finally {
    await stores.close();
    database.close();
  }
}
