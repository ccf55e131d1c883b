import { type APIMessage, Routes } from "discord.js";
import type { OutboundFile, Posted, Receipt } from "../../../src/port/sink.ts";
import type { Api, ApiAnswer } from "../api/client.ts";
import { codeOf } from "../api/error.ts";
import type { Files } from "../api/files.ts";
import { type MessagePlace, toMessageId, toNonce } from "../ids.ts";
import { type MessageBody, readCustomIds } from "./draft.ts";
import { attach } from "./files.ts";

const NO_HISTORY = 160002;
const ARCHIVED = 50083;

export interface Post {
  body: MessageBody;
  files: readonly OutboundFile[];
  nonce: string;
  /** The message to reply to, if it is in the same channel. */
  replyToId?: string | undefined;
}

export interface PostAndUpdateWriter {
  /** If the nonce was used before, Discord returns the first message. */
  post(channelId: string, post: Post, signal: AbortSignal): Promise<Posted>;
  update(place: MessagePlace, body: MessageBody, signal: AbortSignal): Promise<Receipt>;
  remove(place: MessagePlace, signal: AbortSignal): Promise<void>;
}

/** `mayRefer`: false for a channel in which a post cannot reply to a message. */
export function createPostAndUpdateWriter(
  api: Api,
  files: Pick<Files, "toPostedRefs">,
  mayRefer: (channelId: string) => boolean,
): PostAndUpdateWriter {
  /** Channels where the bot cannot read the history, so that a post cannot be a reply. */
  const unreadable = new Set<string>();

  /** Retries an update after the thread was archived: unlike a post, an update does not reopen the thread. */
  async function awake<T>(channelId: string, write: () => Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (codeOf(error) !== ARCHIVED) throw error;
      await api.call({ method: "PATCH", route: Routes.channel(channelId), body: { archived: false } }, signal);
      return await write();
    }
  }

  async function send(
    channelId: string,
    { body, files, nonce, replyToId }: Post,
    signal: AbortSignal,
  ): Promise<ApiAnswer> {
    const message_reference = { message_id: replyToId, fail_if_not_exists: false };
    const base = {
      ...body,
      nonce: toNonce(nonce),
      enforce_nonce: true,
      ...(replyToId !== undefined && { message_reference }),
    };
    return api.call({ method: "POST", route: Routes.channelMessages(channelId), ...attach(base, files) }, signal);
  }

  return {
    async post(channelId, given, signal) {
      const mustStandAlone = unreadable.has(channelId) || !mayRefer(channelId);
      const post = mustStandAlone ? { ...given, replyToId: undefined } : given;
      try {
        return toPosted(await awake(channelId, () => send(channelId, post, signal), signal), post.body, files);
      } catch (error) {
        // Posts without a reference to the question: only the reference needs the permission to read the history.
        if (codeOf(error) !== NO_HISTORY || post.replyToId === undefined) throw error;
        unreadable.add(channelId);
        return toPosted(await send(channelId, { ...post, replyToId: undefined }, signal), post.body, files);
      }
    },
    async update({ channelId, messageId }, body, signal) {
      const route = Routes.channelMessage(channelId, messageId);
      const write = () => api.call({ method: "PATCH", route, body }, signal);
      return toReceipt(await awake(channelId, write, signal));
    },
    async remove({ channelId, messageId }, signal) {
      const route = Routes.channelMessage(channelId, messageId);
      await awake(channelId, () => api.call({ method: "DELETE", route }, signal), signal);
    },
  };
}

/** Sets `isPartial` if the message is an earlier attempt's and shows less: the caller must then write the rest. */
export function toPosted(answer: ApiAnswer, body: MessageBody, files: Pick<Files, "toPostedRefs">): Posted {
  const message = answer.data as APIMessage;
  const attachments = files.toPostedRefs(message);
  return {
    id: toMessageId({ channelId: message.channel_id, messageId: message.id }),
    ...(attachments.length > 0 && { attachments }),
    ...(!showsBody(message, body) && { isPartial: true }),
    ...toReceipt(answer),
  };
}

/** True if the message shows the whole body. Discord trims white space around a text, and omits unchanged fields. */
function showsBody(message: Partial<APIMessage>, body: MessageBody): boolean {
  const { content = body.content, components = body.components } = message;
  const hasButtons = readCustomIds(components).join() === readCustomIds(body.components).join();
  return hasButtons && content.trim() === body.content.trim();
}

export function toReceipt({ budget }: ApiAnswer): Receipt {
  return budget === undefined ? {} : { budget };
}
