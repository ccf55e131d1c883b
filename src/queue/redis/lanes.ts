import type { Logger } from "pino";
import { z } from "zod";
import type { InboundEvent } from "../../port/events.ts";
import { toDeletionKey } from "../../port/ids.ts";
import type { RedisConnection } from "../../store/redis-connection.ts";
import { createStoredParser, parseStored } from "../../store/values.ts";
import { type Failures, NO_FAILURES } from "../attempts.ts";
import { laneOf } from "../event-lane.ts";
import { storedEvent } from "../stored-event.ts";
import { type GivenUp, noteGivenUp } from "./given-up.ts";
import { KEYS } from "./keys.ts";
import type { ActiveLane } from "./places.ts";

/** A claim outlives its event, so that a delivery repeated a day later is still recognised. */
const CLAIM_TTL_MS = 48 * 3_600_000;
/** Longest that a lane stays with a process that stands still, or of which nobody knows whether it does. */
export const LEASE_MS = 3_000;
/** So long it stays with a process that has no connection to Redis any more, as when it was killed. */
export const SURE_MS = 1_500;
/** After Redis was away for all, holders of lanes have this long to say that they live, before others take over. */
export const HOLDERS_FIRST_MS = 2_500;
/** Most events read of one lane; the later ones have their turn later. */
const MAX_EVENTS = 200;

export interface Stored {
  event: InboundEvent;
  /** Its very characters, by which it is found there. */
  raw: string;
}

/** A lane that a process works on, and the token by which it does. */
export interface LeasedLane {
  laneId: string;
  token: string;
}

const storedFailures = z.object({ failures: z.number(), faults: z.number(), isGivenUp: z.boolean() });

/**
 * The waiting events, in Redis. A call with an outdated token does nothing, and says so. An event that cannot be read
 * stays in its lane, and those behind it go on: a newer version may be able to read it.
 */
export interface RedisLanes {
  /** Claims the key, stores the event and tells everybody, all or nothing. False when the key had been claimed before. */
  accept(event: InboundEvent): Promise<boolean>;
  /** The first readable event of a lane; undefined when nothing waits in it. */
  head(laneId: string): Promise<LaneHead | "unreadable" | undefined>;
  /**
   * Takes a lane for `LEASE_MS`, fencing its former holder. Undefined while somebody else has a lease: of a process that
   * has gone from Redis, the first `SURE_MS` of it.
   */
  take(laneId: string): Promise<TakenLane | undefined>;
  /** Prolongs leases by `LEASE_MS`, lapsed ones too unless taken over. Resolves to the ids of those lost. */
  prolong(lanes: readonly LeasedLane[]): Promise<readonly string[]>;
  /** Milliseconds until a lease ends that is not renewed; 0 where there is none. */
  leaseMs(laneId: string): Promise<number>;
  read(laneId: string): Promise<Stored[]>;
  /**
   * Counts, before their work begins, that it does. Resolves to what is known of the work on the first one; `changed`
   * where one of them is gone, `fenced` where the lane is another's.
   */
  begin(
    laneId: string,
    token: string,
    taken: readonly Stored[],
    active: ActiveLane,
  ): Promise<Begun | "changed" | "fenced">;
  /** False where the lane is another's. */
  finish(laneId: string, token: string, done: readonly Stored[]): Promise<boolean>;
  /** Gives lane and place back. Resolves to whether something waits in it. `token` is undefined where it was not taken. */
  release(laneId: string, token: string | undefined): Promise<boolean>;
  /** Keeps the failures for whoever takes the lane next. */
  saveFailures(laneId: string, failures: Failures): Promise<void>;
  /** The work has ended some way or other, or its process is to end anyway: its death is not to be blamed on it. */
  uncount(eventKey: string): Promise<void>;
  /** Earlier deaths do not count any more. */
  countAnew(eventKeys: readonly string[]): Promise<void>;
  conversationOf(messageId: string): Promise<string | undefined>;
  /**
   * Takes the waiting events for which `isErased` is true off every lane, which then counts its failures from nought,
   * and resolves to them. Running work does not hear of it: `tell` an `AuthorErasure` as well.
   */
  erase(isErased: (event: InboundEvent) => boolean): Promise<InboundEvent[]>;
  tell(message: object): Promise<void>;
  /** Adds the event to the list of those given up, for the operator. */
  noteGivenUp(event: GivenUp): Promise<void>;
  countWaiting(): Promise<number>;
}

export interface TakenLane {
  token: string;
  waiting: Stored[];
  failures: Failures;
  /** Its former holder has not given it back. */
  wasOwned: boolean;
}

export interface Begun {
  /** How often a process has died since the work came any further. */
  deaths: number;
  /** Work on it was begun before, also where that was cut in order. */
  wasBegun: boolean;
}

export interface LaneHead extends Stored {
  /** Beginnings of the work on it without an end. */
  begun: number;
  /** Milliseconds until it may be taken from whoever has it, if the lease is not renewed; 0: now. */
  leaseMs: number;
  /** The process that worked on it has not given it back. */
  isOwned: boolean;
}

const ACCEPT = `
if KEYS[6] and redis.call('EXISTS', KEYS[6]) == 1 then return 0 end
if not redis.call('SET', KEYS[1], '1', 'NX', 'PX', ARGV[1]) then return 0 end
redis.call('RPUSH', KEYS[2], ARGV[2])
redis.call('ZADD', KEYS[3], 'NX', ARGV[3], ARGV[4])
redis.call('INCR', KEYS[4])
if KEYS[5] then redis.call('SET', KEYS[5], ARGV[6], 'PX', ARGV[1]) end
redis.call('PUBLISH', ARGV[5], ARGV[2])
return 1`;
/** A lease has the process, or only a token where that is not to be seen: not yet again, or in an older version. */
const LEASE = `
local function isSeen(holder) return redis.call('PUBSUB', 'NUMSUB', '${KEYS.alive("")}' .. holder)[2] > 0 end
local function left(lease)
  local holder, ms = redis.call('GET', lease), redis.call('PTTL', lease)
  if not holder then return 0 end
  if tonumber(holder) or isSeen(holder) then return ms end
  return math.max(ms - ${LEASE_MS - SURE_MS}, 0)
end
local function hold(lease, token, holder)
  redis.call('SET', lease, isSeen(holder) and holder or token, 'PX', ${LEASE_MS})
end
`;
const HEAD = `${LEASE}
local begun = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
return { begun, redis.call('EXISTS', KEYS[2]), left(KEYS[3]) }`;
const TAKE = `${LEASE}
if left(KEYS[5]) > 0 then return false end
local owned = redis.call('EXISTS', KEYS[1])
local token = tostring(redis.call('INCR', KEYS[2]))
redis.call('SET', KEYS[1], token)
hold(KEYS[5], token, ARGV[2])
return { token, redis.call('LRANGE', KEYS[3], 0, ARGV[1]), redis.call('GET', KEYS[4]) or '', owned }`;
/** A server that came back without what it held has given the lane to nobody either. */
const PROLONG = `${LEASE}
local lost, last = {}, tonumber(redis.call('GET', KEYS[1]) or '0')
for index = 2, #ARGV do
  local owner, lease, token = KEYS[2 * index - 2], KEYS[2 * index - 1], ARGV[index]
  local known = redis.call('GET', owner)
  if not known and last < tonumber(token) then
    redis.call('SET', owner, token)
    if tonumber(token) > tonumber(redis.call('GET', KEYS[1]) or '0') then redis.call('SET', KEYS[1], token) end
    known = token
  end
  if known == token then hold(lease, token, ARGV[1])
  else lost[#lost + 1] = index - 2 end
end
return lost`;
const BEGIN = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'fenced' end
local there = {}
for _, raw in ipairs(redis.call('LRANGE', KEYS[2], 0, ARGV[5])) do there[raw] = true end
for index = 6, #ARGV do if not there[ARGV[index]] then return 'changed' end end
redis.call('HSET', KEYS[4], ARGV[2], ARGV[3])
local known = redis.call('HEXISTS', KEYS[3], ARGV[4])
return { redis.call('HINCRBY', KEYS[3], ARGV[4], 1) - 1, known }`;
const FINISH = `
if KEYS[1] ~= '' and redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local at = 2
for index = 6, #KEYS do redis.call('DEL', KEYS[index]) end
while at < #ARGV do
  if redis.call('LREM', KEYS[2], 1, ARGV[at]) > 0 then redis.call('DECR', KEYS[4]) end
  redis.call('HDEL', KEYS[3], ARGV[at + 1])
  at = at + 2
end
redis.call('DEL', KEYS[5])
return 1`;
/** Once nothing is left to do the rounds begin anew: kept for longer, they would name people who are forgotten. */
const RELEASE = `
local owner = redis.call('GET', KEYS[1]) or ''
if owner == ARGV[1] then
  redis.call('DEL', KEYS[1], KEYS[7])
  redis.call('HDEL', KEYS[4], ARGV[2])
  redis.call('INCR', KEYS[5])
end
if redis.call('LLEN', KEYS[2]) > 0 then return 1 end
redis.call('ZREM', KEYS[3], ARGV[2])
redis.call('HDEL', KEYS[6], ARGV[2])
if redis.call('HLEN', KEYS[4]) + redis.call('HLEN', KEYS[6]) == 0 then redis.call('DEL', KEYS[8]) end
return 0`;
/** Work that has ended is not begun any more; what stays at nought was cut. */
const UNCOUNT = `
local begun = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
if begun > 0 then redis.call('HSET', KEYS[1], ARGV[1], begun - 1) end
return 1`;

const COUNT_ANEW = `
for _, key in ipairs(ARGV) do
  if redis.call('HEXISTS', KEYS[1], key) == 1 then redis.call('HSET', KEYS[1], key, 0) end
end
return 1`;

/** `now`: milliseconds by a clock that all processes share. `workerId`: whose leases they are. */
export function createRedisLanes(
  { client, run }: RedisConnection,
  now: () => number,
  workerId: string,
  log: Logger,
): RedisLanes {
  const parse = createStoredParser(storedEvent, KEYS.lane(""), log);
  const toStored = (raws: readonly string[]) =>
    raws.flatMap((raw): Stored | [] => {
      const event = parse(raw);
      return event === undefined ? [] : { event, raw };
    });
  const evaluate = (script: string, keys: string[], given: Array<string | number>) =>
    run(() => client.eval(script, { keys, arguments: given.map(String) }));

  /** `owner` is empty when events are taken off whoever holds the lane. */
  async function takeOff(laneId: string, owner: string, token: string, done: readonly Stored[]): Promise<boolean> {
    const keys = [owner, KEYS.lane(laneId), KEYS.begun, KEYS.waiting, KEYS.failures(laneId)];
    const messages = done.flatMap(({ event }) => (event.kind === "message" ? [KEYS.message(event.messageId)] : []));
    const given = [token, ...done.flatMap(({ raw, event }) => [raw, event.key])];
    return (await evaluate(FINISH, [...keys, ...messages], given)) === 1;
  }

  async function read(laneId: string): Promise<Stored[]> {
    return toStored(await run(() => client.lRange(KEYS.lane(laneId), 0, -1)));
  }

  async function tell(message: object): Promise<void> {
    await run(() => client.publish(KEYS.channel, JSON.stringify(message)));
  }

  return {
    async accept(event) {
      const { id } = laneOf(event);
      const keys = [KEYS.claim(event.key), KEYS.lane(id), KEYS.lanes, KEYS.waiting];
      if (event.kind === "message") keys.push(KEYS.message(event.messageId), KEYS.claim(toDeletionKey(event.key)));
      const given = [CLAIM_TTL_MS, JSON.stringify(event), now(), id, KEYS.channel, event.conversationId];
      return (await evaluate(ACCEPT, keys, given)) === 1;
    },
    async head(laneId) {
      const [first] = await run(() => client.lRange(KEYS.lane(laneId), 0, 0));
      if (first === undefined) return undefined;
      const [stored] = parse(first) ? toStored([first]) : await read(laneId);
      if (stored === undefined) return "unreadable";
      const keys = [KEYS.begun, KEYS.owner(laneId), KEYS.lease(laneId)];
      const told = await evaluate(HEAD, keys, [stored.event.key]);
      const [begun, owned, leaseMs] = told as [number, number, number];
      return { ...stored, begun, leaseMs, isOwned: owned > 0 };
    },
    async take(laneId) {
      const keys = [KEYS.owner(laneId), KEYS.token, KEYS.lane(laneId), KEYS.failures(laneId), KEYS.lease(laneId)];
      const told = await evaluate(TAKE, keys, [MAX_EVENTS - 1, workerId]);
      if (told === null) return undefined;
      const [token, waiting, text, owned] = told as [string, string[], string, number];
      const failures = parseStored(storedFailures, text) ?? NO_FAILURES;
      return { token, waiting: toStored(waiting), failures, wasOwned: owned > 0 };
    },
    async prolong(leased) {
      const keys = leased.flatMap(({ laneId }) => [KEYS.owner(laneId), KEYS.lease(laneId)]);
      const given = [workerId, ...leased.map(({ token }) => token)];
      const lost = (await evaluate(PROLONG, [KEYS.token, ...keys], given)) as number[];
      return lost.flatMap((index) => leased[index]?.laneId ?? []);
    },
    leaseMs: async (laneId) => Math.max(0, await run(() => client.pTTL(KEYS.lease(laneId)))),
    read,
    async begin(laneId, token, taken, active) {
      const keys = [KEYS.owner(laneId), KEYS.lane(laneId), KEYS.begun, KEYS.active];
      const given = [token, laneId, JSON.stringify(active), taken[0]?.event.key ?? "", MAX_EVENTS - 1];
      const told = await evaluate(BEGIN, keys, [...given, ...taken.map(({ raw }) => raw)]);
      if (told === "fenced" || told === "changed") return told;
      const [deaths, known] = told as [number, number];
      return { deaths, wasBegun: known > 0 };
    },
    finish: (laneId, token, done) => takeOff(laneId, KEYS.owner(laneId), token, done),
    async release(laneId, token = "") {
      const own = [KEYS.owner(laneId), KEYS.lane(laneId)];
      const keys = [...own, KEYS.lanes, KEYS.active, KEYS.version, KEYS.queued, KEYS.lease(laneId), KEYS.rounds];
      return (await evaluate(RELEASE, keys, [token, laneId])) === 1;
    },
    async saveFailures(laneId, failures) {
      await run(() => client.set(KEYS.failures(laneId), JSON.stringify(failures)));
    },
    async uncount(eventKey) {
      await evaluate(UNCOUNT, [KEYS.begun], [eventKey]);
    },
    async countAnew(eventKeys) {
      await evaluate(COUNT_ANEW, [KEYS.begun], [...eventKeys]);
    },
    async conversationOf(messageId) {
      return (await run(() => client.get(KEYS.message(messageId)))) ?? undefined;
    },
    async erase(isErased) {
      const erased: InboundEvent[] = [];
      for (const laneId of await run(() => client.zRange(KEYS.lanes, 0, -1))) {
        const found = (await read(laneId)).filter(({ event }) => isErased(event));
        if (found.length > 0) await takeOff(laneId, "", "", found);
        erased.push(...found.map(({ event }) => event));
      }
      return erased;
    },
    tell,
    noteGivenUp: (event) => run(() => noteGivenUp(client, event)),
    countWaiting: async () => Number((await run(() => client.get(KEYS.waiting))) ?? 0),
  };
}
