import { PART_KEYS } from "./partition.ts";
import { SILENT_MS } from "./partition-scripts.ts";

/** The keys in Redis in addition to those of the partitions. */
export const JOURNAL_KEYS = {
  /** Marks an event as accepted. */
  claim: (eventKey: string) => `palaver:queue:claim:${eventKey}`,
  /** The conversation in which a message waits. */
  message: (messageId: string) => `palaver:queue:message:${messageId}`,
  /** The previous owner's list of calls against a partition's rate limits. */
  calls: (partition: number) => `palaver:parts:calls:${partition}`,
  /** A channel for events that reach every process now or never. */
  told: "palaver:parts:told",
} as const;

/**
 * KEYS: the claim, the partition's journal and, for a message, its conversation and the claim of its deletion. ARGV:
 * the claim's milliseconds to live, the event, its conversation. Returns 0 if the event was claimed before.
 */
export const ACCEPT = `
if not redis.call('SET', KEYS[1], '1', 'NX', 'PX', ARGV[1]) then return 0 end
if KEYS[4] and redis.call('EXISTS', KEYS[4]) == 1 then return 0 end
redis.call('XADD', KEYS[2], '*', 'e', ARGV[2])
if KEYS[3] then redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[1]) end
return 1`;

/**
 * KEYS: the owner, the mark of the lane, the journal, the counts of starts. ARGV: the owner's value, the entries.
 * Returns a list that starts with a word. After "gone" it has the missing entries. After "started" it says if this is a
 * resumption, and has the number of deaths so far.
 */
export const BEGIN = `
local owner, mark = unpack(redis.call('MGET', KEYS[1], KEYS[2]))
if owner ~= ARGV[1] then return { 'fenced' } end
if mark then return { 'kept' } end
local gone = { 'gone' }
for at = 2, #ARGV do
  if #redis.call('XRANGE', KEYS[3], ARGV[at], ARGV[at]) == 0 then gone[#gone + 1] = ARGV[at] end
end
if #gone > 1 then return gone end
local known = redis.call('HEXISTS', KEYS[4], ARGV[2])
return { 'started', tostring(known), tostring(redis.call('HINCRBY', KEYS[4], ARGV[2], 1) - 1) }`;

/**
 * Ends the work on a lane. KEYS: the owner or the mark of the lane, the journal, the counts of starts, the
 * conversations of messages. ARGV: the value, the lane if it is a kept one, the entries. Returns 0 if another process
 * took over.
 */
const toEnd = (change: string) => `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
for at = 3, #ARGV do${change}end
for at = 4, #KEYS do redis.call('DEL', KEYS[at]) end
if ARGV[2] ~= '' then
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', '${PART_KEYS.freed}', ARGV[2])
end
return 1`;

/** For finished entries. */
export const SETTLE = toEnd(`
  redis.call('XDEL', KEYS[2], ARGV[at])
  redis.call('HDEL', KEYS[3], ARGV[at])
`);

/** For aborted work. Leaves a count of 0, so that the next start counts as a resumption. */
export const UNCOUNT = toEnd(`
  local begun = tonumber(redis.call('HGET', KEYS[3], ARGV[at]) or 0)
  if begun > 0 then redis.call('HSET', KEYS[3], ARGV[at], begun - 1) end
`);

/** KEYS: the counts of starts. ARGV: the entry. */
export const COUNT_ANEW = `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then redis.call('HSET', KEYS[1], ARGV[1], 0) end
return 1`;

/**
 * KEYS: the journal, the counts of starts. ARGV: for each entry its id, the mark of its lane, the key of its message's
 * conversation. Returns how many entries remain because another process still works on their lanes.
 */
export const ERASE = `
local left = 0
for at = 1, #ARGV, 3 do
  if redis.call('EXISTS', ARGV[at + 1]) == 1 then left = left + 1
  else
    redis.call('XDEL', KEYS[1], ARGV[at])
    redis.call('HDEL', KEYS[2], ARGV[at])
    redis.call('DEL', ARGV[at + 2])
  end
end
return left`;

/** ARGV: partitions. Returns those without a living owner. */
export const UNOWNED = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local free = {}
for _, partition in ipairs(ARGV) do
  local process = (redis.call('GET', '${PART_KEYS.owner("")}' .. partition) or ''):match('^%d+:(.+)$')
  local seen = process and (redis.call('HGET', '${PART_KEYS.members}', process) or ''):match('^%d+')
  if not seen or now - seen > ${SILENT_MS} then free[#free + 1] = tonumber(partition) end
end
return free`;
