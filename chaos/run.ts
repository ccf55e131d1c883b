import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { createHistory, type History } from "../src/history/history.ts";
import { createHistoryKeys, type HistoryKeys } from "../src/history/keys.ts";
import type { HistoryEntry } from "../src/history/record.ts";
import { startSandbox } from "../src/sandbox/server.ts";
import { createStores, type Stores } from "../src/store/keyv.ts";
import { createUsage } from "../src/usage/usage.ts";
import { namesIn, unedited } from "../test/support/fault-loop/answers.ts";
import { readTurns } from "../test/support/fault-loop/service.ts";
import { openShop } from "../test/support/fault-loop/shop.ts";
import { openUpstream } from "../test/support/fault-loop/upstream.ts";
import { ANY_TURN, lookFor, type Question, type Shown } from "../test/support/fault-loop/world.ts";
import { silent } from "../test/support/log.ts";
import { createRandom } from "../test/support/pacing/random.ts";
import { startRedis } from "../test/support/redis.ts";
import { makeDataDir } from "../test/support/service.ts";
import { type Cluster, startCluster } from "./cluster.ts";
import { DASHBOARD_ENV, readBoard } from "./dashboard.ts";
import { openDiscordStage } from "./discord-stage.ts";
import type { Doing, FaultKind, Plan, PlannedFault, PlannedQuestion } from "./plan.ts";
import type { Disturbance, Note, Record, SaidQuestion } from "./record.ts";
import { openSlackStage } from "./slack-stage.ts";
import type { Stage } from "./stage.ts";

const REDIS_SECRET = "canary-of-redis";
const GATEWAY_SECRET = "canary-of-the-gateway";
/** Longest that somebody waits for a message on which to press. */
const LOOK_MS = 5_000;
/** Longer than the service waits for a silent upstream, or for the end of a minute. */
const REST_MS = 75_000;
/** Nothing changes for so long: it is over. */
const QUIET_MS = 2_500;
/** Between two looks at what is open: each costs every process 3 ms. */
const STEP_MS = 1_000;
const DAY_MS = 86_400_000;
/** Quotas that nobody comes near, so that each request is reserved and none refused. */
const POLICY = { quotas: { person: { day: { tokens: 1e9, requests: 1e6 } }, all: { month: { requests: 1e6 } } } };

export interface RunOptions {
  /** Modules that each process of the service loads first, as addresses. */
  preload?: readonly string[];
  /** Without anything that changes for so long, whatever is still open stays open. */
  restMs?: number;
  /** Processes log what only those need who look for a cause. */
  hasDetails?: boolean;
  onNote?(note: Note): void;
}

/** Lets a plan happen to real processes, waits until all is at rest, and resolves to everything that was recorded. */
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
  const stage = await (plan.platform === "slack" ? openSlackStage : openDiscordStage)(plan.places);
  resources.defer(stage.close);
  const sandbox = await startSandbox({ host: "127.0.0.1", port: 0, log: silent, tokensPerSecond: Infinity });
  resources.defer(sandbox.close);
  const shop = await openShop();
  resources.defer(shop.close);
  const upstream = await openUpstream({ elsewhere: { url: sandbox.url, key: "sk-sandbox-all" } });
  resources.defer(upstream.close);
  const redis = await startRedis({ isKept: true, password: REDIS_SECRET });
  resources.defer(redis.stop);
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
    redisUrl: redis.url,
    env: (origin) => ({
      ...stage.env(origin),
      GATEWAY_API_KEY: GATEWAY_SECRET,
      CHAT_MODEL: "scripted",
      IMAGE_MODEL: "sandbox-image",
      POLICY_FILE: policyPath,
      MCP_CONFIG: mcpPath,
      // Wide enough that nothing is left out.
      HISTORY_MAX_MESSAGES: "1000",
      HISTORY_MAX_TOKENS: "1000000",
      MAX_CONCURRENT_TURNS: "64",
      // Seven of them are for the end itself.
      SHUTDOWN_GRACE_SECONDS: "9",
      ...DASHBOARD_ENV,
      ...(hasDetails && { LOG_LEVEL: "debug" }),
    }),
    preload,
    note,
  });
  resources.defer(cluster.close);
  for (const { name, script } of plan.questions) upstream.script(name, script);
  const script: Script = { plan, stage, cluster, note, questions: [], removed: new Set(), begunAnew: new Set() };
  const disturbances: Disturbance[] = [];
  const wishes = new Map<string, () => boolean>();

  await stage.install(await cluster.ready());
  const startMs = Date.now();
  note("it begins");
  const until = (atMs: number) => sleep(Math.max(0, startMs + atMs - Date.now()));
  await Promise.all([
    ...plan.questions.map((question) => until(question.atMs).then(() => ask(script, question))),
    ...plan.pictures.map(async ({ atMs, place, name }) => {
      await until(atMs);
      note(`somebody asks for a picture of ${name}`);
      wishes.set(name, stage.draw(place, name));
    }),
    ...plan.faults.map(async (fault) => {
      await until(fault.atMs);
      for (const one of toSteps(fault, plan)) {
        const disturbance = { ...toWhere(one, plan, stage), fromMs: Date.now(), toMs: Number.POSITIVE_INFINITY };
        disturbances.push(disturbance);
        await suffer(script, one, redis);
        disturbance.toMs = Date.now();
      }
    }),
  ]);
  note("all was said and done");
  const open = await settle(script, restMs);
  note("it is at rest");
  const board = await readBoard(await cluster.ready());
  const { turns, histories, spent } = await readStores(redis.url);
  return {
    plan,
    notes: notes.toSorted((a, b) => a.atMs - b.atMs),
    lives: cluster.lives,
    disturbances,
    questions: script.questions,
    drawn: [...wishes].flatMap(([name, isHeard]) => (isHeard() ? [name] : [])),
    removed: script.removed,
    begunAnew: script.begunAnew,
    told: stage.told,
    asked: upstream.asked,
    shown: stage.shown(),
    calls: stage.calls(),
    breaks: stage.breaks(),
    turns,
    histories,
    spent,
    board,
    acts: shop.marks,
    open,
    secrets: [REDIS_SECRET, GATEWAY_SECRET, ...Object.values(DASHBOARD_ENV), ...stage.secrets],
  };
}

interface Script {
  plan: Plan;
  stage: Stage;
  cluster: Cluster;
  note(what: string): void;
  questions: SaidQuestion[];
  removed: Set<string>;
  begunAnew: Set<string>;
}

async function ask(script: Script, planned: PlannedQuestion): Promise<void> {
  const { stage, questions, note } = script;
  const place = stage.places[planned.place];
  if (place === undefined) return;
  note(`person ${planned.person} asks ${planned.name}`);
  const question = { ...place.ask(planned.name, planned.person), place: planned.place, saidAtMs: Date.now() };
  questions.push(question);
  if (planned.doing === undefined) return;
  await sleep(planned.doing.afterMs);
  await act(script, question, planned.doing.what);
}

async function act(script: Script, question: Question & { place: number }, what: Doing): Promise<void> {
  const { stage, removed, begunAnew, note } = script;
  const place = stage.places[question.place];
  if (place === undefined) return;
  switch (what) {
    case "edit":
      note(`${question.name} is edited`);
      begunAnew.add(question.id);
      return place.edit(question, `${question.name}e`);
    case "remove":
      note(`${question.name} is deleted`);
      removed.add(question.id);
      return place.remove(question);
    case "stop":
    case "retry":
      return press(script, question, what === "stop" ? "Stop" : "Retry");
  }
}

/** Presses a button of the answer to a question as soon as it is there. Nobody waits for ever. */
async function press(
  { stage, questions, begunAnew, note }: Script,
  question: Question & { place: number },
  label: string,
) {
  const place = stage.places[question.place];
  // A name at the end of a text that grows may not be whole yet: the stroke makes it no name.
  const namesOf = ({ text }: Shown) => namesIn(`${text}_`).map(unedited);
  const isIts = (message: Shown) =>
    namesOf(message).includes(question.name) &&
    message.buttons.some((button) => button.label === label || button.payload === ANY_TURN);
  const message = await lookFor(() => place?.shown().find(isIts), LOOK_MS);
  if (message === undefined) return;
  note(`person ${question.person} presses ${label} at ${question.name}`);
  // The answer may be that of another question, which took this one in.
  const meant = questions.filter(({ name }) => namesOf(message).includes(name));
  if (label === "Retry") for (const { id } of meant) begunAnew.add(id);
  try {
    place?.press(message.id, label, question.person);
  } catch {
    // It has gone in between.
  }
}

/** The single faults of which a planned one consists. */
function toSteps(fault: PlannedFault, { roles }: Plan): PlannedFault[] {
  if (fault.kind !== "roll") return [fault];
  return roles.map((_, slot) => ({ ...fault, kind: "end", share: slot / roles.length }));
}

const AT_ALL: ReadonlySet<FaultKind> = new Set(["redis-kill", "redis-freeze", "platform"]);

function toWhere({ kind, share }: PlannedFault, { roles }: Plan, { troubles }: Stage) {
  const trouble = kind === "platform" ? troubles[Math.floor(share * troubles.length)] : undefined;
  const slot = AT_ALL.has(kind) ? undefined : Math.floor(share * roles.length);
  return { kind, slot, ...(trouble !== undefined && { trouble }) };
}

type Redis = Awaited<ReturnType<typeof startRedis>>;

const SLOW_MS = 150;

/** Lets something go wrong and, where that does not happen by itself, sets it right. */
async function suffer({ plan, stage, cluster, note }: Script, fault: PlannedFault, redis: Redis): Promise<void> {
  const { kind, lastsMs } = fault;
  const { slot = 0, trouble = "" } = toWhere(fault, plan, stage);
  switch (kind) {
    case "kill":
      return cluster.end(slot, "SIGKILL", lastsMs);
    case "end":
    case "roll":
      return cluster.end(slot, "SIGTERM", lastsMs);
    case "stop":
      cluster.stop(slot);
      await sleep(lastsMs);
      return cluster.goOn(slot);
    case "redis-kill":
      note("Redis is killed");
      await redis.kill();
      await sleep(lastsMs);
      await redis.restart();
      return note("Redis is there again");
    case "redis-freeze":
      note("Redis stands still");
      redis.freeze();
      await sleep(lastsMs);
      redis.thaw();
      return note("Redis goes on");
    case "redis-slow":
      note(`Redis is slow for process ${slot + 1}`);
      cluster.slowRedis(slot, SLOW_MS);
      await sleep(lastsMs);
      cluster.slowRedis(slot, 0);
      return note(`Redis is quick again for process ${slot + 1}`);
    case "redis-cut":
      note(`process ${slot + 1} is cut off from Redis`);
      return cluster.cutRedis(slot);
    case "platform": {
      note(`the platform has trouble: ${trouble}`);
      const heal = stage.places[fault.place]?.inflict(trouble, createRandom(Math.floor(fault.atMs)));
      if (heal === undefined) return;
      await sleep(lastsMs);
      note(`the platform has no trouble any more: ${trouble}`);
      return heal();
    }
  }
}

/** Waits until nothing is open and nothing changes. Resolves to what is still open after that. */
async function settle({ stage, cluster }: Script, restMs: number): Promise<number> {
  let before = "";
  let changedAtMs = Date.now();
  for (;;) {
    const open = await cluster.countOpen();
    const shown = stage.shown();
    const look = JSON.stringify([open, stage.calls().length, shown.length, stage.isSettled()]);
    if (look !== before) changedAtMs = Date.now();
    before = look;
    const quietMs = Date.now() - changedAtMs;
    const isDone = open === 0 && stage.isSettled() && shown.every(({ isGrowing }) => !isGrowing);
    if (isDone && quietMs > QUIET_MS) return 0;
    if (quietMs > restMs) return open ?? 0;
    await sleep(STEP_MS);
  }
}

/** All of a conversation: read from its end, one that ends with an answer is that answer's branch alone. */
async function readWhole(keys: HistoryKeys, conversationId: string): Promise<HistoryEntry[]> {
  const { first = 0, last = -1 } = (await keys.readHead(conversationId)) ?? {};
  const places = Array.from({ length: last - first + 1 }, (_, offset) => ({ conversationId, seq: first + offset }));
  return (await keys.readEntries(places)).flatMap((stored) => stored?.entry ?? []);
}

/** Reads the turns and the histories that are stored at the end. */
async function readStores(redisUrl: string) {
  const stores: Stores = createStores({ redisUrl, database: new DatabaseSync(":memory:"), log: silent });
  try {
    const history: History = createHistory({ ...stores, ttlMs: DAY_MS, log: silent, now: Date.now });
    const keys = createHistoryKeys(stores.open, DAY_MS, silent);
    const histories = new Map<string, HistoryEntry[]>();
    for await (const id of history.conversations("")) histories.set(id, await readWhole(keys, id));
    const { open, counters } = stores;
    const { requests: counted } = await createUsage({ open, counters, log: silent, now: Date.now }).readMonth(
      "everyone",
    );
    const spent = { counted, held: await counters.countHolds() };
    return { turns: await readTurns(stores), histories, spent };
  } finally {
    await stores.close();
  }
}
