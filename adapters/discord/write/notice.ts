import { MessageFlags, Routes } from "discord.js";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import { neutralize } from "../../../src/text/neutralize.ts";
import type { Api } from "../api/client.ts";
import type { Rooms } from "../api/rooms.ts";
import { PLATFORM, toNonce } from "../ids.ts";
import { toMessageBody } from "./draft.ts";
import {
  createInteractionToken,
  type InteractionTokenDeps,
  ORIGINAL,
  readInteractionAddress,
} from "./interaction-token.ts";
import { openDirectly } from "./private.ts";
import type { FinalMessages } from "./private-ending.ts";

/** Sends a direct message. Repeated calls with the same nonce send only one message. */
async function writeDirectly(
  api: Api,
  userId: string,
  { markdown, nonce }: { markdown: string; nonce: string },
  signal: AbortSignal,
): Promise<void> {
  const id = await openDirectly(api, userId, signal);
  const { content, allowed_mentions, flags } = toMessageBody({ markdown, buttons: [], streaming: false }, {});
  const body = { content, allowed_mentions, flags, nonce: toNonce(nonce), enforce_nonce: true };
  await api.call({ method: "POST", route: Routes.channelMessages(id), body }, signal);
}

export interface NotifyPrivatelyDeps extends InteractionTokenDeps {
  finalMessages: Pick<FinalMessages, "settle">;
}

/** Replaces a promised public answer with a private message. Without a promised answer, sends a direct message. */
export function createNotifyPrivately(deps: NotifyPrivatelyDeps): NonNullable<Adapter["notifyPrivately"]> {
  const { api, finalMessages, acknowledgements } = deps;
  return async (reply, authorId, text, nonce, signal) => {
    const markdown = neutralize(text);
    const interaction = readInteractionAddress(reply);
    if (interaction !== undefined) {
      const token = createInteractionToken(interaction, deps);
      // Deletes the promise first, because a message that replaces it is as public as the promise.
      const isGone = await token.call({ method: "DELETE", messageId: ORIGINAL }, signal);
      acknowledgements.delete(interaction.token);
      finalMessages.settle(interaction, ORIGINAL);
      const body = toMessageBody({ markdown, buttons: [], streaming: false }, {});
      const flags = body.flags | MessageFlags.Ephemeral;
      const replacement = isGone && (await token.call({ method: "POST", body: { ...body, flags } }, signal));
      if (replacement !== undefined) return;
    }
    const where = reply.platform === PLATFORM ? `<#${reply.threadId ?? reply.channelId}>: ` : "";
    await writeDirectly(api, authorId, { markdown: `${where}${markdown}`, nonce }, signal);
  };
}

/** A user gets at most one message about a channel within this time. */
const SILENT_MS = 60 * 60_000;
const MAX_REMEMBERED = 500;
const CALL_MS = 10_000;

/** Tells a user in a direct message that the bot cannot write in a channel; at most once an hour. Ignores failures. */
export type TellNotAllowed = (userId: string, channelId: string) => Promise<void>;

export function createTellNotAllowed(api: Api, rooms: Rooms, now: () => number): TellNotAllowed {
  const notifiedAt = new BoundedMap<string, number>(MAX_REMEMBERED);

  return async (userId, channelId) => {
    const key = `${userId} ${channelId}`;
    if ((notifiedAt.get(key) ?? -Infinity) > now() - SILENT_MS) return;
    notifiedAt.set(key, now());
    const where = rooms.nameOfChannel(channelId);
    const markdown = `I can't answer you in ${where === undefined ? "that channel" : `#${where}`}: I don't have permission to write there. Ask someone who manages the server to let me send messages, or write to me here.`;
    const nonce = `not allowed: ${key} ${now()}`;
    try {
      await writeDirectly(api, userId, { markdown, nonce }, AbortSignal.timeout(CALL_MS));
    } catch {
      // Ignores a failure, because some users accept no direct messages.
    }
  };
}
