/** Sends files to one person's direct conversation. For ephemeral replies, see `interaction-writer.ts`. */
import { type APIChannel, Routes } from "discord.js";
import type { ReplyAddress } from "../../../src/port/events.ts";
import type { Posted } from "../../../src/port/sink.ts";
import type { Api } from "../api/client.ts";
import type { InteractionAddress } from "./interaction-token.ts";
import type { Post, PostAndUpdateWriter } from "./post-and-update.ts";

/** Shown to everyone instead of a private file. */
export const SENT_DIRECTLY = "I sent you the file in a direct message.";

/** The only user who should see a reply that would otherwise be public. */
export function findOnlyReader(
  { visibleTo, isDirect }: ReplyAddress,
  interaction?: InteractionAddress,
): string | undefined {
  return isDirect === true || interaction?.isPrivate === true ? undefined : visibleTo;
}

/** Resolves to the direct conversation with a user. Repeated calls give the same one. */
export async function openDirectly(api: Api, userId: string, signal: AbortSignal): Promise<string> {
  const opening = { method: "POST" as const, route: Routes.userChannels(), body: { recipient_id: userId } };
  return ((await api.call(opening, signal)).data as APIChannel).id;
}

export async function uploadDirectly(
  userId: string,
  post: Omit<Post, "replyToId">,
  { api, postAndUpdate }: { api: Api; postAndUpdate: Pick<PostAndUpdateWriter, "post"> },
  signal: AbortSignal,
): Promise<Posted> {
  return postAndUpdate.post(await openDirectly(api, userId, signal), post, signal);
}
