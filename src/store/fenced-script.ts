import { FencedError, type Right } from "../port/right.ts";
import type { RedisClient } from "./redis-connection.ts";
import { evalScript } from "./redis-script.ts";

const FENCED = "FENCED";
/**
 * Takes the fences from the end of the script's arguments, and stops the script if one of them is invalid. A fence with
 * an empty value is valid while its key does not exist.
 */
const CHECK = `
local fences, fenceValues = {}, {}
for index = 1, tonumber(table.remove(ARGV)) do
  fences[index], fenceValues[index] = table.remove(KEYS), table.remove(ARGV)
end
if #fences > 0 then
  for index, value in ipairs(redis.call('MGET', unpack(fences))) do
    if (value or '') ~= fenceValues[index] then return redis.error_reply('${FENCED}') end
  end
end
`;

/** Runs a Lua script and checks the fences in the same step. Rejects with a `FencedError` if a fence is invalid. */
export async function evalFenced(
  client: RedisClient,
  script: string,
  keys: readonly string[],
  values: readonly string[],
  right: Right,
): Promise<unknown> {
  for (;;) {
    let sent = "";
    try {
      return await evalScript(client, CHECK + script, () => {
        // In a turn without a lock, the right has the same fence twice.
        const fences = [...new Map(right.fences.map((fence) => [`${fence.key} ${fence.value}`, fence])).values()];
        sent = keysOf(right);
        return {
          keys: [...keys, ...fences.map(({ key }) => key)],
          arguments: [...values, ...fences.map(({ value }) => value), String(fences.length)],
        };
      });
    } catch (error) {
      if (!(error instanceof Error) || !error.message.includes(FENCED)) throw error;
      // A partition renamed the right's keys while the script ran (see `Partitions.rightOf`).
      if (sent !== keysOf(right)) continue;
      throw new FencedError("Another process has taken over this work.", { cause: error });
    }
  }
}

function keysOf({ fences }: Right): string {
  return fences.map(({ key }) => key).join();
}
