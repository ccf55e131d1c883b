import { z } from "zod";
import type { Right } from "../port/right.ts";
import { type Counters, type Counts, ONCE_MS, REPLACED_MS, toReservedId } from "./counters.ts";
import { evalFenced } from "./fenced-script.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { evalScript } from "./redis-script.ts";
import { parseStored } from "./values.ts";

/** The braces keep all keys on one node of a cluster, because a script changes several keys. */
const PLACE = "palaver:{counters}:";

/**
 * The start of every script. `row:` keys hold JSON, decimal numbers by name; `once:` keys name what was counted
 * already; `rows` indexes all rows. Redis does not remove expired rows from the index, so each new row checks two
 * random names in the index: at most about half of them are expired. A row or a count that cannot be read counts as 0.
 */
const COMMON = `
local place = KEYS[1]
local index = place .. 'rows'
local function whole(number) return string.format('%.0f', number) end
local function read(rows)
  local keys, found = {}, {}
  for at, row in ipairs(rows) do keys[at] = place .. 'row:' .. row end
  for at, text in ipairs(#keys > 0 and redis.call('MGET', unpack(keys)) or {}) do
    local isJson, counts = pcall(cjson.decode, text or '')
    found[at] = isJson and type(counts) == 'table' and counts
  end
  return found
end
local function amount(counts, count) return counts and tonumber(counts[count]) or 0 end
local function enter(new)
  local looked = redis.pcall('ZRANDMEMBER', index, 2 * #new)
  if looked.err then
    redis.call('DEL', index)
    looked = {}
  end
  local members = {}
  for _, row in ipairs(new) do
    members[#members + 1] = 0
    members[#members + 1] = row
  end
  redis.call('ZADD', index, unpack(members))
  for at, row in ipairs(read(looked)) do
    if not row then redis.call('ZREM', index, looked[at]) end
  end
end
local function add(additions)
  local rows, sums, ttls = {}, {}, {}
  for _, addition in ipairs(additions) do
    local row = addition.row
    if not sums[row] then
      rows[#rows + 1] = row
      sums[row], ttls[row] = {}, addition.ttlMs
    end
    for count, by in pairs(addition.counts) do
      if by ~= 0 then sums[row][count] = (sums[row][count] or 0) + by end
    end
  end
  local known, new = read(rows), {}
  for at, row in ipairs(rows) do
    local counts = known[at] or {}
    for count, by in pairs(sums[row]) do counts[count] = whole(amount(counts, count) + by) end
    if next(sums[row]) then
      local key, text = place .. 'row:' .. row, cjson.encode(counts)
      if known[at] then redis.call('SET', key, text, 'KEEPTTL')
      else
        redis.call('SET', key, text, 'PX', whole(ttls[row]))
        new[#new + 1] = row
      end
    end
  end
  if #new > 0 then enter(new) end
end
`;

const RESERVE = `${COMMON}
local reservation = cjson.decode(ARGV[1])
local once, reserved = place .. 'once:' .. reservation.id, place .. 'once:' .. ARGV[2]
if redis.call('EXISTS', once, reserved) > 0 then return false end
local rows, lifts = {}, {}
for i, bound in ipairs(reservation.bounds) do rows[i], lifts[i] = bound.row, bound.unless end
local used, lifted = read(rows), read(lifts)
local rooms, fits = {}, true
for i, bound in ipairs(reservation.bounds) do
  local room = bound.most
  for _, count in ipairs(bound.counts) do room = room - amount(used[i], count) end
  if lifted[i] then room = math.max(room, bound.by) end
  rooms[i] = whole(room)
  if room < bound.by then fits = false end
end
if not fits then return rooms end
redis.call('SET', reserved, '1', 'PX', ${ONCE_MS})
add(reservation.additions)
return false`;

const ADD = `${COMMON}
local isReserved = ARGV[2] ~= '' and redis.call('DEL', place .. 'once:' .. ARGV[2]) == 1
local keptMs = isReserved and ${REPLACED_MS} or ${ONCE_MS}
local isNew = redis.call('SET', place .. 'once:' .. ARGV[1], '1', 'NX', 'PX', keptMs)
local additions = isNew and cjson.decode(isReserved and ARGV[4] or ARGV[3]) or {}
if ARGV[5] and redis.call('SET', place .. 'once:' .. ARGV[5], '1', 'NX', 'PX', ${ONCE_MS}) then
  for _, addition in ipairs(cjson.decode(ARGV[6])) do additions[#additions + 1] = addition end
end
add(additions)
return isNew and 1 or 0`;

const RENAME = `${COMMON}
local from = place .. 'row:' .. ARGV[1]
local counts, ttl = read({ARGV[1]})[1], redis.call('PTTL', from)
if counts and ttl > 0 then
  for count in pairs(counts) do counts[count] = amount(counts, count) end
  add({{row = ARGV[2], counts = counts, ttlMs = ttl}})
end
redis.call('DEL', from)
redis.call('ZREM', index, ARGV[1])
return 1`;

const LIST = `${COMMON}
local found, rows = {}, redis.pcall('ZRANGE', index, ARGV[1], ARGV[2], 'BYLEX')
for _, row in ipairs(rows) do
  local counts = read({row})[1]
  if counts then found[#found + 1] = {row, cjson.encode(counts)} else redis.call('ZREM', index, row) end
end
return found`;

const namedRows = z.array(z.tuple([z.string(), z.string()]));
const rooms = z.array(z.string()).nullable();
const storedCounts = z.record(z.string(), z.unknown());

/** Counts in a Redis that processes share. The rows expire by Redis's clock. */
export function createRedisCounters({ client, run }: RedisConnection, right: Right): Counters {
  const evaluate = (script: string, ...given: string[]) =>
    run(() => evalScript(client, script, () => ({ keys: [PLACE], arguments: given })));

  return {
    async reserve(reservation) {
      const given = [JSON.stringify(reservation), toReservedId(reservation.id)];
      const found = rooms.parse(await run(() => evalFenced(client, RESERVE, [PLACE], given, right)));
      return found?.map(Number);
    },
    async add(id, additions, corrections, also) {
      const given = [additions, corrections ?? []].map((list) => JSON.stringify(list));
      if (also !== undefined) given.push(also.id, JSON.stringify(also.additions));
      return (await evaluate(ADD, id, corrections === undefined ? "" : toReservedId(id), ...given)) === 1;
    },
    async read(rows) {
      const keys = rows.map((row) => `${PLACE}row:${row}`);
      const found = keys.length === 0 ? [] : await run(() => client.mGet(keys));
      return new Map(rows.map((row, index) => [row, toCounts(found[index] ?? "")]));
    },
    async list(prefix) {
      const found = namedRows.parse(await evaluate(LIST, `[${prefix}`, `(${prefix}\u{10FFFF}`));
      const rows = found.map(([row, counts]) => [row, toCounts(counts)] as const);
      return rows.flatMap(([row, counts]) => (Object.keys(counts).length === 0 ? [] : [[row, counts]]));
    },
    rename: async (row, to) => void (await evaluate(RENAME, row, to)),
    remove: async (row) => void (await run(() => client.del(`${PLACE}row:${row}`))),
  };
}

/** A removed reservation leaves a 0. */
function toCounts(text: string): Counts {
  const counts = Object.entries(parseStored(storedCounts, text) ?? {});
  return Object.fromEntries(counts.flatMap(([name, number]) => (Number(number) ? [[name, Number(number)]] : [])));
}
