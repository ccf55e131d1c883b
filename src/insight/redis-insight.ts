import { z } from "zod";
import type { RedisConnection } from "../store/redis-connection.ts";
import type { InsightStore } from "./insight-store.ts";

const ROOT = "palaver:insight:";
const PROCESSES = `${ROOT}processes`;
const toListKey = (list: string) => `${ROOT}list:${list}`;

/** Drops processes without a recent report, then stores this report. */
const REPORT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for id, text in pairs(cjson.decode(ARGV[2])) do redis.call('HSET', KEYS[1], id, (now + tonumber(ARGV[1])) .. ' ' .. text) end
local all = redis.call('HGETALL', KEYS[1])
local living = {}
for index = 1, #all, 2 do
  local untilMs, text = string.match(all[index + 1], '^(%d+) (.*)$')
  if untilMs and tonumber(untilMs) > now then living[#living + 1] = text else redis.call('HDEL', KEYS[1], all[index]) end
end
redis.call('PEXPIRE', KEYS[1], 3600000)
return living`;

/** Adds to a list. First removes a value of another type, because it would make every push fail. */
const PUSH = `
if redis.call('TYPE', KEYS[1]).ok ~= 'list' then redis.call('DEL', KEYS[1]) end
redis.call('LPUSH', KEYS[1], ARGV[1])
return redis.call('LTRIM', KEYS[1], 0, ARGV[2] - 1)`;

const texts = z.array(z.string());

export function createRedisInsight({ client, run }: Pick<RedisConnection, "client" | "run">): InsightStore {
  async function exchange(reports: Readonly<Record<string, string>>, forMs: number): Promise<string[]> {
    const given = [String(forMs), JSON.stringify(reports)];
    return texts.parse(await run(() => client.eval(REPORT, { keys: [PROCESSES], arguments: given })));
  }

  return {
    async push(list, text, max) {
      await run(() => client.eval(PUSH, { keys: [toListKey(list)], arguments: [text, String(max)] }));
    },
    list: (list) => run(() => client.lRange(toListKey(list), 0, -1)),
    async remove(list, texts) {
      for (const text of texts) await run(() => client.lRem(toListKey(list), 0, text));
    },
    report: async (id, text, forMs) => void (await exchange({ [id]: text }, forMs)),
    reports: () => exchange({}, 0),
  };
}
