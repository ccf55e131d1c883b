import { FencedError, fencesHeld } from "../concurrency/fence.ts";
import type { RedisConnection } from "./redis-connection.ts";

const FENCED = "FENCED";
/** Takes the fences off the end of what the script is given, and ends it where one of them has fallen. */
const CHECK = `
for _ = 1, tonumber(table.remove(ARGV)) do
  if redis.call('GET', table.remove(KEYS)) ~= table.remove(ARGV) then return redis.error_reply('${FENCED}') end
end
`;

/**
 * Runs a Lua script in one step with the check of the fences that are held. Rejects with a `FencedError`, and nothing is
 * changed, when one has fallen.
 */
export async function evalFenced(
  client: RedisConnection["client"],
  script: string,
  keys: readonly string[],
  values: readonly string[],
): Promise<unknown> {
  const fences = fencesHeld();
  const given = [...values, ...fences.map(({ value }) => value), String(fences.length)];
  try {
    return await client.eval(CHECK + script, { keys: [...keys, ...fences.map(({ key }) => key)], arguments: given });
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes(FENCED)) throw error;
    throw new FencedError("Another process does this by now.", { cause: error });
  }
}
