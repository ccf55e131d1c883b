import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { Api } from "../api/client.ts";
import type { Rooms } from "../api/rooms.ts";
import { writeDirectly } from "../write/post-privately.ts";

/** One person is told about one channel once in this time. */
const SILENT_MS = 60 * 60_000;
const MAX_REMEMBERED = 500;
const CALL_MS = 10_000;

/** Tells somebody directly that the bot may not write in the channel where they asked. Best effort, once an hour. */
export type TellNotAllowed = (userId: string, channelId: string) => Promise<void>;

export function createTellNotAllowed(api: Api, rooms: Rooms, now: () => number): TellNotAllowed {
  const told = new BoundedMap<string, number>(MAX_REMEMBERED);

  return async (userId, channelId) => {
    const key = `${userId} ${channelId}`;
    if ((told.get(key) ?? -Infinity) > now() - SILENT_MS) return;
    told.set(key, now());
    const where = rooms.nameOfChannel(channelId);
    const markdown = `I cannot answer you in ${where === undefined ? "that channel" : `#${where}`}, because I may not write there. Somebody who manages the server can give me the permission to send messages. Here I can answer you.`;
    const nonce = `not allowed: ${key} ${now()}`;
    try {
      await writeDirectly(api, userId, { markdown, nonce }, AbortSignal.timeout(CALL_MS));
    } catch {
      // Not everybody takes direct messages.
    }
  };
}
