import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { z } from "zod";
import { createKeyedQueue } from "../../concurrency/keyed-queue.ts";
import type { RedisConnection } from "../../store/redis-connection.ts";
import { createStoredParser } from "../../store/values.ts";
import { chooseNext, FIRST_ROUND, type Rounds, type Work } from "../admission.ts";
import type { Ring } from "./bells.ts";
import { KEYS } from "./keys.ts";

/** A process that has not said for so long that it works counts as gone, without a connection to Redis sooner. */
const WORKER_MS = 3_000;
const UNCONNECTED_MS = 1_200;
const COLLISION_MS = 5;

const storedWork: z.ZodType<Work> = z.object({
  kind: z.enum(["question", "drawing", "errand"]),
  person: z.string(),
  channel: z.string(),
  budget: z.string().exactOptional(),
  isSuspect: z.boolean(),
});
const activeLane = z.object({
  work: storedWork,
  /** The process; absent where the place is yet to be taken. */
  worker: z.string().exactOptional(),
  /** The people whose events are being worked on, as far as erasing them erases the events. */
  people: z.array(z.string()).readonly().exactOptional(),
});
const queuedLane = z.object({
  work: storedWork,
  /** Smaller: began to wait earlier. Not a time. */
  since: z.number(),
});
const storedRounds = z.tuple([z.number(), z.array(z.tuple([z.string(), z.number()]))]);
const member = z.tuple([z.string(), z.number()]);

export type ActiveLane = z.infer<typeof activeLane>;
type Queued = z.infer<typeof queuedLane>;

/** The places of all processes, given out by one policy. Each change is made only if nothing changed meanwhile. */
export interface Places {
  /**
   * Asks for a place. Where there is none, the lane waits for one. Replies of one budget are written by one process
   * while it works: what belongs to another one is `elsewhere`.
   */
  admit(laneId: string, work: Work): Promise<"admitted" | "queued" | "queued before" | { elsewhere: string }>;
  /** The process that works on a lane; undefined where none does that takes in more. */
  workerOf(laneId: string): Promise<string | undefined>;
  /** Gives free places to lanes that wait for one. */
  dispatch(): Promise<void>;
  /** Says that this process lives; to be called every second. Resolves to the number of those that do. */
  beat(): Promise<number>;
  /** This process finishes its work and takes in nothing more. */
  stop(): Promise<void>;
  /** This process has ended: its places go. */
  leave(): Promise<void>;
  look(): Promise<Look>;
}

export interface Look {
  active: ReadonlyMap<string, ActiveLane>;
  queued: ReadonlyMap<string, Queued>;
  /** Processes that work, with their places: none is left where a process takes in nothing more. */
  workers: ReadonlyMap<string, number>;
}

interface State extends Look {
  version: string;
  rounds: Rounds;
  /** The number of places that all processes which take in more have together. */
  places: number;
}

/** A lane that was given a place, and the process where it belongs. */
interface Given {
  to: string;
  at: string | undefined;
}

/** A lane is given a place, or waits for one. */
type Change =
  | { laneId: string; active: ActiveLane; rounds?: Rounds; queued?: never }
  | { laneId: string; queued: Queued; active?: never; rounds?: never };

const READ = `
return {
  redis.call('GET', KEYS[1]) or '0', redis.call('GET', KEYS[2]) or '', redis.call('HGETALL', KEYS[3]),
  redis.call('HGETALL', KEYS[4]), redis.call('ZRANGEBYSCORE', KEYS[5], ARGV[1], '+inf')
}`;
const CHANGE = `
if (redis.call('GET', KEYS[1]) or '0') ~= ARGV[1] then return 0 end
redis.call('INCR', KEYS[1])
if ARGV[3] ~= '' then redis.call('SET', KEYS[2], ARGV[3]) end
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[3], ARGV[2], ARGV[4])
  redis.call('HDEL', KEYS[4], ARGV[2])
else
  redis.call('HSET', KEYS[4], ARGV[2], ARGV[5])
end
return 1`;
const STRIKE_OFF = `
local gone, found = {}, redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[2], 'WITHSCORES')
for index = 1, #found, 2 do
  local isRead, member = pcall(cjson.decode, found[index])
  local id = isRead and type(member) == 'table' and type(member[1]) == 'string' and member[1]
  local isGone = tonumber(found[index + 1]) <= tonumber(ARGV[1])
  if isGone or id and redis.call('PUBSUB', 'NUMSUB', '${KEYS.alive("")}' .. id)[2] == 0 then
    redis.call('ZREM', KEYS[1], found[index])
    if id then gone[#gone + 1] = id end
  end
end
return gone`;
const STATE_KEYS = [KEYS.version, KEYS.rounds, KEYS.active, KEYS.queued];

export interface PlacesOptions {
  connection: RedisConnection;
  workerId: string;
  /** How many this process brings along; pictures have bounds of their own. */
  places: number;
  /** Milliseconds by a clock that all processes share. */
  now(): number;
  ring: Ring;
  log: Logger;
}

export function createPlaces({ connection, workerId, places, now, ring, log }: PlacesOptions): Places {
  const { client, run } = connection;
  const toState = createStateReader(places, log);
  // Within this process nobody needs to collide.
  const { run: inTurn } = createKeyedQueue();
  const [working, stopping] = [JSON.stringify([workerId, places]), JSON.stringify([workerId, 0])];
  let own = working;

  async function read(): Promise<State> {
    const keys = [...STATE_KEYS, KEYS.workers];
    const answer = (await run(() => client.eval(READ, { keys, arguments: [String(now())] }))) as StateAnswer;
    return toState(answer);
  }

  async function change({ version }: State, { laneId, rounds, active, queued }: Change): Promise<boolean> {
    const values = [rounds && formatRounds(rounds), active && JSON.stringify(active), queued && JSON.stringify(queued)];
    const given = [version, laneId, ...values.map((value) => value ?? "")];
    const isMade = (await run(() => client.eval(CHANGE, { keys: STATE_KEYS, arguments: given }))) === 1;
    if (!isMade) await sleep(COLLISION_MS * Math.random());
    return isMade;
  }

  /** Gives a place to the next one waiting among `own`. `changed`: ask again. */
  async function giveOne(state: State, own: [string, Queued] | undefined): Promise<Given | "none" | "changed"> {
    const waiting = [...state.queued].filter(([id]) => id !== own?.[0]);
    if (own !== undefined) waiting.push(own);
    waiting.sort(([, one], [, other]) => one.since - other.since);
    const under = [...state.active.values()].map(({ work }) => work);
    const choice = chooseNext(
      state.rounds,
      waiting.map(([, { work }]) => work),
      under,
      state.places,
    );
    const chosen = choice && waiting[choice.index];
    if (choice === undefined || chosen === undefined) return "none";
    const [laneId, { work }] = chosen;
    const active = { work, ...(laneId === own?.[0] && { worker: workerId }) };
    const isMade = await change(state, { laneId, rounds: choice.rounds, active });
    return isMade ? { to: laneId, at: findWorker(state, laneId, work, undefined) } : "changed";
  }

  async function admit(laneId: string, work: Work): ReturnType<Places["admit"]> {
    for (;;) {
      const state = await read();
      const at = findWorker(state, laneId, work, workerId);
      if (at !== undefined && at !== workerId) return { elsewhere: at };
      // Left by a process that died with it, or given to it while it waited.
      if (state.active.has(laneId)) {
        if (await change(state, { laneId, active: { work, worker: workerId } })) return "admitted";
        continue;
      }
      const before = state.queued.get(laneId);
      const own: Queued = { work, since: before?.since ?? Number(state.version) + 1 };
      const given = await giveOne(state, [laneId, own]);
      if (given === "changed") continue;
      if (given === "none") {
        if (await change(state, { laneId, queued: own })) return before ? "queued before" : "queued";
      } else if (given.to === laneId) return "admitted";
      else await ring(given.to, given.at);
    }
  }

  async function dispatch(): Promise<void> {
    // Nearly always nothing waits, and the state is as large as what all processes work on.
    while ((await run(() => client.hLen(KEYS.queued))) > 0) {
      const given = await giveOne(await read(), undefined);
      if (given === "none") return;
      if (given !== "changed") await ring(given.to, given.at);
    }
  }

  return {
    admit: (laneId, work) => inTurn("", () => admit(laneId, work)),
    dispatch: () => inTurn("", dispatch),
    async beat() {
      await run(() => client.zAdd(KEYS.workers, { value: own, score: now() + WORKER_MS }));
      return await run(() => client.zCount(KEYS.workers, now(), "+inf"));
    },
    async stop() {
      own = stopping;
      await run(() => client.zAdd(KEYS.workers, { value: stopping, score: now() + WORKER_MS }));
      await run(() => client.zRem(KEYS.workers, working));
    },
    async leave() {
      await run(() => client.zRem(KEYS.workers, [working, stopping]));
    },
    async workerOf(laneId) {
      const { active, workers } = await read();
      const worker = active.get(laneId)?.worker ?? "";
      return (workers.get(worker) ?? 0) > 0 ? worker : undefined;
    },
    look: read,
  };
}

type StateAnswer = [version: string, rounds: string, active: string[], queued: string[], workers: string[]];

/** Unreadable entries count as absent. `ownPlaces` counts when no process is known yet. */
function createStateReader(ownPlaces: number, log: Logger): (answer: StateAnswer) => State {
  const parseMember = createStoredParser(member, KEYS.workers, log);
  const parseRounds = createStoredParser(storedRounds, KEYS.rounds, log);
  const parseActive = createStoredParser(activeLane, KEYS.active, log);
  const parseQueued = createStoredParser(queuedLane, KEYS.queued, log);
  return ([version, rounds, active, queued, workers]) => {
    const known = workers.flatMap((text) => {
      const found = parseMember(text);
      return found === undefined ? [] : [found];
    });
    const [now, next] = (rounds !== "" && parseRounds(rounds)) || [FIRST_ROUND.now, FIRST_ROUND.next];
    return {
      version,
      rounds: { now, next: new Map(next) },
      active: toMap(active, parseActive),
      queued: toMap(queued, parseQueued),
      // One that stops may still be known as it was before.
      workers: new Map(known.toSorted(([, one], [, other]) => other - one)),
      places: known.reduce((sum, [, own]) => sum + own, 0) || ownPlaces,
    };
  };
}

/**
 * Strikes processes off that have gone, by a clock that all share. Resolves to their ids: in one process alone, which is
 * to see to what they had.
 */
export async function strikeOff({ client, run }: RedisConnection, now: number): Promise<string[]> {
  const silentSince = now + WORKER_MS - UNCONNECTED_MS;
  const options = { keys: [KEYS.workers], arguments: [String(now), String(silentSince)] };
  return (await run(() => client.eval(STRIKE_OFF, options))) as string[];
}

/**
 * Finds the process that a lane belongs to: the one that works on it, or else on others of its budget, or else whoever
 * asks, unless all its places are taken and another one has some left. Work without a budget belongs to whoever asks.
 * Undefined: whichever hears of it.
 */
function findWorker(
  { active, workers }: State,
  laneId: string,
  { budget }: Work,
  asking: string | undefined,
): string | undefined {
  if (budget === undefined) return asking;
  const takesMore = (worker = "") => (workers.get(worker) ?? 0) > 0;
  const own = active.get(laneId)?.worker;
  if (takesMore(own)) return own;
  const known = [...active.values()].flatMap(({ work, worker }) =>
    work.budget === budget && worker !== undefined && takesMore(worker) ? [worker] : [],
  );
  // Sorted, so that all processes choose the same one of several, as after one stood still.
  const [first] = known.toSorted();
  if (first !== undefined) return first;
  const roomOf = (id: string) =>
    (workers.get(id) ?? 0) - [...active.values()].filter(({ worker }) => worker === id).length;
  if (asking === undefined || roomOf(asking) > 0) return asking;
  const [most] = [...workers.keys()].toSorted((one, other) => roomOf(other) - roomOf(one));
  return most !== undefined && roomOf(most) > 0 ? most : asking;
}

function toMap<T>(flat: readonly string[], parse: (text: string) => T | undefined): Map<string, T> {
  const map = new Map<string, T>();
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const value = parse(flat[at + 1] ?? "");
    if (value !== undefined) map.set(flat[at] ?? "", value);
  }
  return map;
}

function formatRounds({ now, next }: Rounds): string {
  return JSON.stringify([now, [...next]] satisfies z.infer<typeof storedRounds>);
}
