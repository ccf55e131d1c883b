import { type APIChannel, MessageFlags, Routes } from "discord.js";
import type { Api } from "../api/client.ts";
import { toNonce } from "../ids.ts";
import type { Rooms } from "../rooms.ts";

/** Said once in this time to one person about one channel. */
const SILENT_MS = 60 * 60_000;
const MAX_REMEMBERED = 500;
const CALL_MS = 10_000;

/** Tells somebody directly why there is no answer where the bot may not write. Best effort, and never twice in a row. */
export type TellNotAllowed = (userId: string, channelId: string) => Promise<void>;

export function createTellNotAllowed(api: Api, rooms: Rooms, now: () => number): TellNotAllowed {
  const told = new Map<string, number>();

  return async (userId, channelId) => {
    const key = `${userId} ${channelId}`;
    if ((told.get(key) ?? -Infinity) > now() - SILENT_MS) return;
    told.delete(key);
    told.set(key, now());
    const [oldest] = told.keys();
    if (told.size > MAX_REMEMBERED && oldest !== undefined) told.delete(oldest);
    const where = rooms.nameOfChannel(channelId);
    const content = `I cannot answer you in ${where === undefined ? "that channel" : `#${where}`}, because I may not write there. Somebody who manages the server can give me the permission to send messages. Here I can answer you.`;
    const nonce = toNonce(`not allowed: ${key} ${now()}`);
    const flags = MessageFlags.SuppressEmbeds;
    const body = { content, allowed_mentions: { parse: [] }, flags, nonce, enforce_nonce: true };
    try {
      const signal = AbortSignal.timeout(CALL_MS);
      const opening = { method: "POST" as const, route: Routes.userChannels(), body: { recipient_id: userId } };
      const { id } = (await api.call(opening, signal)).data as APIChannel;
      await api.call({ method: "POST", route: Routes.channelMessages(id), body }, signal);
    } catch {
      // Not everybody takes direct messages.
    }
  };
}
