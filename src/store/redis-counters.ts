import { type Counters, type Counts, ONCE_MS } from "./counters.ts";
import { evalFenced } from "./fenced-script.ts";
import type { RedisConnection } from "./redis-connection.ts";

/** Braces keep all keys on one node of a cluster: a script changes several of them. */
const PLACE = "palaver:{counters}:";
/** Holds that one step ends because nobody settled them: the others wait for the next one. */
const LAPSED_AT_ONCE = 100;

/**
 * The common beginning of all scripts. `row:` counts, `held:` holds, `hold:` one piece of work, `once:` work counted
 * already; `rows` is the index of all rows. Redis takes no row out of it that expires. So every addition looks at twice
 * as many names of it, by chance, as it may put in: at most about half of them are of rows that are gone. A count that is
 * no number counts as 0, and an unreadable hold counts as absent.
 */
const COMMON = `
local place = KEYS[1]
for _, name in ipairs({'rows', 'holds'}) do
  if redis.call('TYPE', place .. name).ok ~= 'zset' then redis.call('DEL', place .. name) end
end
local function whole(number) return string.format('%.0f', number) end
local function tidy(most)
  if most == 0 then return end
  for _, row in ipairs(redis.call('ZRANDMEMBER', place .. 'rows', most)) do
    if redis.call('EXISTS', place .. 'row:' .. row) == 0 then redis.call('ZREM', place .. 'rows', row) end
  end
end
local function amount(key, count) return tonumber(redis.pcall('HGET', key, count)) or 0 end
local function increase(key, count, by)
  local sum = redis.pcall('HINCRBY', key, count, whole(by))
  if type(sum) == 'number' then return sum end
  if redis.call('TYPE', key).ok ~= 'hash' then redis.call('DEL', key) end
  redis.call('HSET', key, count, whole(by))
  return by
end
local function add(additions)
  for _, addition in ipairs(additions) do
    local key = place .. 'row:' .. addition.row
    for count, by in pairs(addition.counts) do
      if by ~= 0 then increase(key, count, by) end
    end
    redis.call('ZADD', place .. 'rows', 0, addition.row)
    if redis.call('PTTL', key) < addition.ttlMs then redis.call('PEXPIRE', key, whole(addition.ttlMs)) end
  end
  tidy(2 * #additions)
end
local function read(id)
  local isRead, hold = pcall(cjson.decode, redis.pcall('GET', place .. 'hold:' .. id))
  return isRead and type(hold) == 'table' and hold.id == id and hold or nil
end
local function unhold(bounds)
  for _, bound in ipairs(bounds) do
    local key = place .. 'held:' .. bound.row
    if increase(key, bound.count, -bound.by) <= 0 then redis.call('HDEL', key, bound.count) end
  end
end
local function release(hold)
  redis.call('DEL', place .. 'hold:' .. hold.id)
  redis.call('ZREM', place .. 'holds', hold.id)
  pcall(unhold, hold.bounds)
end
local function lose(hold)
  if not hold.isTentative then pcall(add, hold.loss) end
end
local function sweep(now)
  for _, id in ipairs(redis.call('ZRANGE', place .. 'holds', '-inf', now, 'BYSCORE', 'LIMIT', 0, ${LAPSED_AT_ONCE})) do
    local hold = read(id)
    if hold then release(hold) lose(hold) else redis.call('ZREM', place .. 'holds', id) end
  end
end
`;

const HOLD = `${COMMON}
local hold, now = cjson.decode(ARGV[1]), tonumber(ARGV[2])
sweep(ARGV[2])
local former = read(hold.id)
if former then
  release(former)
  if former.token ~= hold.token then lose(former) end
end
local left, fits = {}, true
for i, bound in ipairs(hold.bounds) do
  local counted = amount(place .. 'row:' .. bound.row, bound.count)
  local held = amount(place .. 'held:' .. bound.row, bound.count)
  local room = bound.most - counted - held
  left[i] = whole(room)
  if room < bound.by then fits = false end
end
if fits then
  redis.call('SET', place .. 'hold:' .. hold.id, ARGV[1])
  redis.call('ZADD', place .. 'holds', whole(now + hold.forMs), hold.id)
  for _, bound in ipairs(hold.bounds) do
    increase(place .. 'held:' .. bound.row, bound.count, bound.by)
  end
end
return left`;

/** Changes the text as it is: decoded and encoded again, large numbers would lose digits. No name can hold bare quotes. */
const CONFIRM = `${COMMON}
local hold = read(ARGV[1])
if not hold or hold.token ~= ARGV[2] then return 0 end
local key = place .. 'hold:' .. hold.id
local text = string.gsub(redis.call('GET', key), '"isTentative":true', '"isTentative":false', 1)
redis.call('SET', key, text)
return 1`;

const SETTLE = `${COMMON}
local hold = read(ARGV[1])
if not hold or hold.token ~= ARGV[2] then return 0 end
release(hold)
add(cjson.decode(ARGV[3]))
return 1`;

const ADD = `${COMMON}
if not redis.call('SET', place .. 'once:' .. ARGV[1], '1', 'NX', 'PX', ARGV[3]) then return 0 end
add(cjson.decode(ARGV[2]))
return 1`;

const RENAME = `${COMMON}
local from, to = place .. 'row:' .. ARGV[1], place .. 'row:' .. ARGV[2]
local counts, ttl = redis.pcall('HGETALL', from), redis.call('PTTL', from)
if ttl > 0 then
  local moved = {}
  for i = 1, #counts, 2 do moved[counts[i]] = tonumber(counts[i + 1]) or 0 end
  add({{row = ARGV[2], counts = moved, ttlMs = ttl}})
end
redis.call('DEL', from)
redis.call('ZREM', place .. 'rows', ARGV[1])
return 1`;

const LIST = `${COMMON}
local found = {}
for _, row in ipairs(redis.call('ZRANGE', place .. 'rows', ARGV[1], ARGV[2], 'BYLEX')) do
  local counts = redis.pcall('HGETALL', place .. 'row:' .. row)
  if #counts == 0 then redis.call('ZREM', place .. 'rows', row) else found[#found + 1] = {row, counts} end
end
return found`;

const SWEEP = `${COMMON}
sweep(ARGV[1])
return redis.call('ZCARD', place .. 'holds')`;

/** Sums in a Redis that processes share. `now`: milliseconds by a clock that all of them share. */
export function createRedisCounters({ client, run }: RedisConnection, now: () => number): Counters {
  const evaluate = <T>(script: string, ...given: string[]) =>
    run(() => client.eval(script, { keys: [PLACE], arguments: given })) as Promise<T>;
  const sweep = () => evaluate<number>(SWEEP, String(now()));
  const readHash = async (key: string) => {
    const counts = await run(() => client.hGetAll(PLACE + key));
    return toCounts(Object.entries(counts).flat());
  };

  return {
    async hold(hold) {
      const left = await run(() => evalFenced(client, HOLD, [PLACE], [JSON.stringify(hold), String(now())]));
      return (left as string[]).map(Number);
    },
    confirm: async (id, token) => (await evaluate(CONFIRM, id, token)) === 1,
    settle: async (id, token, additions) => (await evaluate(SETTLE, id, token, JSON.stringify(additions))) === 1,
    add: async (once, additions) => (await evaluate(ADD, once, JSON.stringify(additions), String(ONCE_MS))) === 1,
    read: (row) => readHash(`row:${row}`),
    async list(prefix) {
      const rows = await evaluate<Array<[string, string[]]>>(LIST, `[${prefix}`, `(${prefix}\u{10FFFF}`);
      return rows.map(([row, counts]) => [row, toCounts(counts)]);
    },
    rename: async (row, to) => void (await evaluate(RENAME, row, to)),
    remove: async (row) => void (await run(() => client.del(`${PLACE}row:${row}`))),
    async readHeld(row) {
      await sweep();
      return readHash(`held:${row}`);
    },
    countHolds: sweep,
  };
}

/** Redis gives names and values in turn. */
function toCounts(pairs: readonly string[]): Counts {
  const counts: Record<string, number> = {};
  for (let at = 0; at + 1 < pairs.length; at += 2) counts[pairs[at] ?? ""] = Number(pairs[at + 1]) || 0;
  return counts;
}
