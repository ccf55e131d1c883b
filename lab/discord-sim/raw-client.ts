import type { Discord } from "./simulator.ts";
import type { Payload } from "./world.ts";

export interface Answer {
  status: number;
  headers: Headers;
  /** Empty if the response has no body. */
  body: Payload;
}

/** Calls the simulator without discord.js: no queue, no retries, no waits. */
export type RawCall = (
  method: string,
  path: string,
  json?: unknown,
  options?: { token?: string | null; files?: readonly { name: string; bytes: Uint8Array }[] },
) => Promise<Answer>;

/** `token: null` sends no token, as in calls with an interaction's token. */
export function createRawClient(discord: Discord): RawCall {
  return async (method, path, json, { token = discord.token, files } = {}) => {
    const headers: Record<string, string> = token === null ? {} : { authorization: `Bot ${token}` };
    let body: string | FormData | null = null;
    if (files !== undefined) {
      body = new FormData();
      body.set("payload_json", JSON.stringify(json));
      for (const [index, { name, bytes }] of files.entries()) {
        body.set(`files[${index}]`, new Blob([new Uint8Array(bytes)]), name);
      }
    } else if (json !== undefined) {
      headers["content-type"] = "application/json";
      body = JSON.stringify(json);
    }
    const response = await fetch(`${discord.apiUrl}/v10${path}`, {
      method,
      headers,
      ...(body === null ? {} : { body }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === "" ? {} : (JSON.parse(text) as Payload),
    };
  };
}
