import { PART_KEYS, PARTITIONS } from "./partition.ts";

/**
 * A process without heartbeats loses its partitions after `SILENT_MS`, or after `GONE_MS` if it is disconnected too.
 */
export const SILENT_MS = 3_000;
export const GONE_MS = 1_500;
/** After this long without a heartbeat, a process may be dead, so the script checks whether it is still connected. */
const MISSED_MS = 700;
/** How long the mark of a kept lane lasts unless the process renews it. */
export const KEPT_MS = 3_000;

/** A heartbeat that reaches Redis later than this takes no partitions from other processes. */
const LATE_MS = 1_000;
const OWNER = PART_KEYS.owner("");
const { members: MEMBERS, epoch: EPOCH } = PART_KEYS;

/**
 * Sends a heartbeat. ARGV: the process's id, its slots, its running conversations, Redis's clock at sending ("" if
 * unknown), and, just after an outage, the owned partitions as "partition:epoch …". If these partitions are given, the
 * heartbeat takes nothing from other processes, and restores owners that the server lost. The last item of the response
 * is the time in ms until a process that lost its connection counts as dead, or -1.
 */
export const BEAT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id, places, held = ARGV[1], tonumber(ARGV[2]), ARGV[5]
-- Redis was frozen while this was under way: nobody could beat meanwhile.
if math.abs(now - (tonumber(ARGV[4]) or now)) > ${LATE_MS} then held = held or '' end
redis.call('HSET', '${MEMBERS}', id, now .. ' ' .. places .. ' ' .. ARGV[3])
local living, processes, working, all, elsewhere = {}, 0, 0, 0, 0
local soon
local known = redis.call('HGETALL', '${MEMBERS}')
for at = 1, #known, 2 do
  local member = known[at]
  local seen, own, running = known[at + 1]:match('^(%d+) (%d+) (%d+)$')
  local silent = now - (seen or 0)
  local isAway = math.abs(silent) > ${MISSED_MS}
    and redis.call('PUBSUB', 'NUMSUB', '${PART_KEYS.alive("")}' .. member)[2] == 0
  local isGone = silent > ${SILENT_MS} or isAway and math.abs(silent) > ${GONE_MS}
  if isAway and not isGone then soon = math.min(soon or ${GONE_MS}, ${GONE_MS} - math.abs(silent)) end
  if isGone and not held then redis.call('HDEL', '${MEMBERS}', member)
  else
    living[member] = true
    processes = processes + 1
    all = all + (own or 0)
    if tonumber(own or 0) > 0 then working = working + 1 end
    if member ~= id then elsewhere = elsewhere + (running or 0) end
  end
end
local keys = {}
for partition = 0, ${PARTITIONS - 1} do keys[partition + 1] = '${OWNER}' .. partition end
local owners = redis.call('MGET', unpack(keys))
for partition, epoch in (held or ''):gmatch('(%d+):(%d+)') do
  if not owners[partition + 1] then
    owners[partition + 1] = epoch .. ':' .. id
    redis.call('SET', keys[partition + 1], owners[partition + 1])
    if tonumber(epoch) > tonumber(redis.call('GET', '${EPOCH}') or 0) then redis.call('SET', '${EPOCH}', epoch) end
  end
end
local own, free = {}, {}
for index = 1, ${PARTITIONS} do
  local epoch, owner = (owners[index] or ''):match('^(%d+):(.*)$')
  if owner == id then own[#own + 1] = index - 1 .. ':' .. epoch
  elseif owner == '' or not held and not living[owner or ''] then free[#free + 1] = index end
end
local share = places > 0 and math.ceil(${PARTITIONS} / working) or 0
local wanted = math.min(share - #own, #free)
if wanted > 0 then
  local epoch = redis.call('INCR', '${EPOCH}')
  for at = 1, wanted do
    redis.call('SET', keys[free[at]], epoch .. ':' .. id)
    own[#own + 1] = free[at] - 1 .. ':' .. epoch
  end
end
return { processes, all, elsewhere, share, table.concat(own, ' '), now, soon or -1 }`;

/**
 * Gives partitions away. ARGV: the process's id if the process is leaving and needs no share (otherwise ""); then for
 * each partition its number, the owner's value, the number of running lanes and their ids. Returns the lanes that
 * another process has taken over. Can run again after a lost response, because it finds the marks of the first run.
 */
export const RELEASE = `
local member = redis.call('HGET', '${MEMBERS}', ARGV[1])
if member then redis.call('HSET', '${MEMBERS}', ARGV[1], (member:gsub('^(%d+) %d+', '%1 0'))) end
local lost, at = {}, 2
while at < #ARGV do
  local owner, value, last = '${OWNER}' .. ARGV[at], ARGV[at + 1], at + 2 + ARGV[at + 2]
  local isOurs = redis.call('GET', owner) == value
  for index = at + 3, last do
    local mark = '${PART_KEYS.kept("")}' .. ARGV[index]
    if isOurs then redis.call('SET', mark, value, 'PX', ${KEPT_MS})
    elseif redis.call('GET', mark) ~= value then lost[#lost + 1] = ARGV[index] end
  end
  if isOurs then redis.call('SET', owner, value:match('^%d+:')) end
  at = last + 1
end
redis.call('PUBLISH', '${PART_KEYS.changed}', '')
return lost`;

/** Renews marks. ARGV: pairs of a lane's id and its mark's value. Returns the lanes whose marks are gone or changed. */
export const KEEP = `
local lost = {}
for at = 1, #ARGV, 2 do
  local mark = '${PART_KEYS.kept("")}' .. ARGV[at]
  if redis.call('GET', mark) == ARGV[at + 1] then redis.call('PEXPIRE', mark, ${KEPT_MS})
  else lost[#lost + 1] = ARGV[at] end
end
return lost`;
