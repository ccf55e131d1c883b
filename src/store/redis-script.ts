import { createHash } from "node:crypto";
import type { RedisClient } from "./redis-connection.ts";

export interface ScriptInput {
  keys: string[];
  arguments: string[];
}

const digests = new Map<string, string>();

/**
 * Runs a Lua script in one step. Sends the script's digest, and its whole text only if the server does not know the
 * digest. Calls `read` for the script's input before each attempt.
 */
export async function evalScript(client: RedisClient, script: string, read: () => ScriptInput): Promise<unknown> {
  const digest = digests.get(script) ?? createHash("sha1").update(script).digest("hex");
  digests.set(script, digest);
  try {
    return await client.evalSha(digest, read());
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
    return client.eval(script, read());
  }
}
