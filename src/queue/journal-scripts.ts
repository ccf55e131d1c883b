import { PART_KEYS } from "./partition.ts";
import { SILENT_MS } from "./partition-scripts.ts";

export const JOURNAL_KEYS = {
  claim: (eventKey: string) => `palaver:queue:claim:${eventKey}`,
  /** The conversation of a message whose work is not done. */
  message: (messageId: string) => `palaver:queue:message:${messageId}`,
  /** The recent calls that count against a partition's rate limits, stored for the partition's next owner. */
  calls: (partition: number) => `palaver:parts:calls:${partition}`,
  /** A pub/sub channel. Its events reach every connected process and are not stored. */
  told: "palaver:parts:told",
} as const;

/**
 * Claims an event and adds it to the journal. KEYS: the claim and the journal; for a message also the key of its
 * conversation and the claim of its deletion. ARGV: the claim's lifetime in ms, the event, the id of its conversation.
 * Returns 0 if the event was claimed before, or if the message was already deleted.
 */
export const ACCEPT = `
if not redis.call('SET', KEYS[1], '1', 'NX', 'PX', ARGV[1]) then return 0 end
if KEYS[4] and redis.call('EXISTS', KEYS[4]) == 1 then return 0 end
redis.call('XADD', KEYS[2], '*', 'e', ARGV[2])
if KEYS[3] then redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[1]) end
return 1`;

/**
 * Starts work on a lane and counts the start. KEYS: the partition's owner, the lane's mark, the journal, the counts of
 * starts. ARGV: the owner's value, then the entry ids. Returns a list that starts with a word: "fenced"; "kept";
 * "gone", followed by the missing entries; or "started", followed by "1" for a resumption (otherwise "0") and the
 * number of deaths.
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
 * Ends work on a lane. KEYS: the partition's owner or the lane's mark, the journal, the counts of starts, the
 * conversations of messages. ARGV: the value of the owner or mark, the lane's id if the lane is kept (otherwise ""),
 * then the entry ids. Returns 0 if another process took the lane over.
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

/** Removes finished entries from the journal. */
export const SETTLE = toEnd(`
  redis.call('XDEL', KEYS[2], ARGV[at])
  redis.call('HDEL', KEYS[3], ARGV[at])
`);

/**
 * Takes back the start of aborted work, so that it is no death. Leaves a count of 0: the next start is a resumption.
 */
export const UNCOUNT = toEnd(`
  local begun = tonumber(redis.call('HGET', KEYS[3], ARGV[at]) or 0)
  if begun > 0 then redis.call('HSET', KEYS[3], ARGV[at], begun - 1) end
`);

/** Forgets the deaths during work on an entry. KEYS: the counts of starts. ARGV: the entry's id. */
export const COUNT_ANEW = `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then redis.call('HSET', KEYS[1], ARGV[1], 0) end
return 1`;

/**
 * Erases entries, except those on which another process still works. KEYS: the journal, the counts of starts. ARGV: for
 * each entry its id, its lane's mark and the key of its message's conversation. Returns the number of entries that
 * remain.
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

/** Finds partitions without a living owner. ARGV: the partitions to check. */
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
