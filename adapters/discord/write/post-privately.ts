import { type APIChannel, MessageFlags, Routes } from "discord.js";
import type { Adapter } from "../../../src/port/adapter.ts";
import { neutralize } from "../../../src/text/neutralize.ts";
import type { Api } from "../api/client.ts";
import { PLATFORM, toNonce } from "../ids.ts";
import type { FinalMessages } from "./final-message.ts";
import {
  createInteractionToken,
  type InteractionTokenDeps,
  ORIGINAL,
  readInteractionAddress,
} from "./interaction-token.ts";
import { toMessageBody } from "./message-body.ts";

/** Resolves to the direct conversation with somebody: to the same one each time. */
export async function openDirectly(api: Api, userId: string, signal: AbortSignal): Promise<string> {
  const opening = { method: "POST" as const, route: Routes.userChannels(), body: { recipient_id: userId } };
  return ((await api.call(opening, signal)).data as APIChannel).id;
}

/** Writes to somebody directly. The same nonce makes one message. */
export async function writeDirectly(
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

export interface PostPrivatelyDeps extends InteractionTokenDeps {
  finalMessages: Pick<FinalMessages, "settle">;
}

/** Writes an ephemeral message in place of the answer that an interaction promised to everybody; without one, directly. */
export function createPostPrivately(deps: PostPrivatelyDeps): NonNullable<Adapter["postPrivately"]> {
  const { api, finalMessages, acknowledgements } = deps;
  return async (reply, authorId, text, nonce, signal) => {
    const markdown = neutralize(text);
    const interaction = readInteractionAddress(reply);
    if (interaction !== undefined) {
      const token = createInteractionToken(interaction, deps);
      // The first message after a promise is as public as the promise, so that is deleted first.
      const isGone = await token.call({ method: "DELETE", messageId: ORIGINAL }, signal);
      acknowledgements.delete(interaction.token);
      finalMessages.settle(interaction, ORIGINAL);
      const body = toMessageBody({ markdown, buttons: [], streaming: false }, {});
      const flags = body.flags | MessageFlags.Ephemeral;
      const told = isGone && (await token.call({ method: "POST", body: { ...body, flags } }, signal));
      if (told !== undefined) return;
    }
    const where = reply.platform === PLATFORM ? `<#${reply.threadId ?? reply.channelId}>: ` : "";
    await writeDirectly(api, authorId, { markdown: `${where}${markdown}`, nonce }, signal);
  };
}
