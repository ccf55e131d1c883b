import type { Draft, Posted, Receipt } from "../../src/adapter.ts";
import { readTs } from "./api/answer.ts";
import { codeOf } from "./api/error.ts";
import type { SlackApi } from "./api.ts";
import { type Block, toMessageBody, toMetadata } from "./blocks.ts";
import { type MessagePlace, toMessageId } from "./ids.ts";
import type { ReplyPlace } from "./lookup.ts";
import { readText } from "./wire.ts";

/** Writes messages whole: posted, then updated. */
export interface WholeWriter {
  post(place: ReplyPlace, draft: Draft, nonce: string, signal: AbortSignal, more?: readonly Block[]): Promise<Posted>;
  update(place: MessagePlace, draft: Draft, nonce: string | undefined, signal: AbortSignal): Promise<Receipt>;
  remove(place: MessagePlace, signal: AbortSignal): Promise<void>;
}

export function createWholeWriter(api: SlackApi): WholeWriter {
  return {
    async post({ teamId, channelId, threadTs }, draft, nonce, signal, more = []) {
      const { blocks, text } = toMessageBody(draft);
      const method = "chat.postMessage";
      const answer = await api.call(
        teamId,
        method,
        {
          channel: channelId,
          ...(threadTs !== undefined && { thread_ts: threadTs }),
          blocks: [...more, ...blocks],
          text,
          metadata: toMetadata(nonce),
          // A preview would be fetched for every address the model writes, whoever put it there.
          unfurl_links: false,
          unfurl_media: false,
        },
        signal,
      );
      // Posted to a person, it stands in the direct conversation with them.
      return {
        id: toMessageId({ teamId, channelId: readText(answer["channel"]) ?? channelId, ts: readTs(method, answer) }),
      };
    },
    async update({ teamId, channelId, ts }, draft, nonce, signal) {
      const metadata = nonce === undefined ? undefined : toMetadata(nonce);
      // Unlike a post, an update reads plain words such as names of channels as markup when nothing else is said.
      const body = { ...toMessageBody(draft), parse: "none", ...(metadata && { metadata }) };
      await api.call(teamId, "chat.update", { channel: channelId, ts, ...body }, signal);
      return {};
    },
    async remove({ teamId, channelId, ts }, signal) {
      try {
        await api.call(teamId, "chat.delete", { channel: channelId, ts }, signal);
      } catch (error) {
        // What is gone already needs no removal.
        if (codeOf(error) !== "message_not_found" && codeOf(error) !== "channel_not_found") throw error;
      }
    },
  };
}
