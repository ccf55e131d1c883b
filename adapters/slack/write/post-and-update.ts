import { SinkError } from "../../../src/port/errors.ts";
import type { Draft, Posted, Receipt } from "../../../src/port/sink.ts";
import type { SlackApi } from "../api/client.ts";
import { codeOf, readTs } from "../api/error.ts";
import { readText } from "../api/wire.ts";
import { type MessagePlace, type ToMark, toMessageId } from "../ids.ts";
import {
  type Block,
  hasFeedback,
  isBlockRefusal,
  type MessageBody,
  type MessageFiles,
  readMessageFiles,
  toMessageBody,
  toMetadata,
} from "./draft.ts";
import { type ReplyPlace, readMessage } from "./lookup.ts";
import type { SinkState } from "./sink-state.ts";

/** Writes messages with `chat.postMessage` and `chat.update`. These replace everything that a message shows. */
export interface PostAndUpdateWriter {
  post(place: ReplyPlace, draft: Draft, nonce: string, signal: AbortSignal, more?: PostExtras): Promise<Posted>;
  update(place: MessagePlace, draft: Draft, nonce: string | undefined, signal: AbortSignal): Promise<Receipt>;
  /** Deletes a bot message and the files that were posted with it, because Slack would keep the files. */
  remove(place: MessagePlace, signal: AbortSignal): Promise<void>;
}

export interface PostExtras {
  pictures?: readonly Block[];
  messageFiles?: MessageFiles;
}

export interface PostAndUpdateDeps {
  api: SlackApi;
  state: Pick<SinkState, "supports" | "markUnsupported" | "files">;
  toMark: ToMark;
}

export function createPostAndUpdateWriter({ api, state, toMark }: PostAndUpdateDeps): PostAndUpdateWriter {
  /** If Slack refuses its own feedback buttons, the next call uses plain ones. */
  async function write<T>(teamId: string, draft: Draft, make: (body: MessageBody) => Promise<T>): Promise<T> {
    const hasFeedbackButtons = hasFeedback(draft.buttons) && state.supports("feedback buttons", teamId);
    const body = toMessageBody(draft, { hasFeedbackButtons });
    try {
      return await make(body);
    } catch (error) {
      if (!hasFeedbackButtons || !isBlockRefusal(error)) throw error;
      state.markUnsupported("feedback buttons", teamId);
      throw new SinkError("unavailable", "Slack rejects feedback buttons there; plain buttons replace them.", {
        cause: error,
      });
    }
  }

  async function deleteMessage({ teamId, channelId, ts }: MessagePlace, signal: AbortSignal): Promise<void> {
    try {
      await api.call(teamId, "chat.delete", { channel: channelId, ts }, signal);
    } catch (error) {
      if (codeOf(error) !== "message_not_found" && codeOf(error) !== "channel_not_found") throw error;
    }
  }

  return {
    post({ teamId, channelId, threadTs }, draft, nonce, signal, { pictures = [], messageFiles } = {}) {
      const method = "chat.postMessage";
      return write(teamId, draft, async ({ blocks, text }) => {
        const answer = await api.call(
          teamId,
          method,
          {
            channel: channelId,
            ...(threadTs !== undefined && { thread_ts: threadTs }),
            blocks: [...pictures, ...blocks],
            text,
            metadata: toMetadata(toMark(nonce), { draft, messageFiles }),
            // Turns previews off, because Slack would fetch every URL that the model writes, even an injected one.
            unfurl_links: false,
            unfurl_media: false,
          },
          signal,
        );
        // A message that is posted to a person is in the direct conversation with them.
        const channel = readText(answer["channel"]) ?? channelId;
        const id = toMessageId({ teamId, channelId: channel, ts: readTs(method, answer) });
        state.files.set(id, messageFiles ?? { ids: [] });
        return { id };
      });
    },
    update({ teamId, channelId, ts }, draft, nonce, signal) {
      const metadata = nonce === undefined ? undefined : toMetadata(toMark(nonce), { draft });
      return write(teamId, draft, async (body) => {
        // Unlike a post, an update parses channel names and similar words in plain text unless `parse` is "none".
        const message = { ...body, parse: "none", ...(metadata && { metadata }) };
        await api.call(teamId, "chat.update", { channel: channelId, ts, ...message }, signal);
        return {};
      });
    },
    async remove(place, signal) {
      // Looks up files that an earlier attempt may have posted. If the look-up fails, only the files stay.
      const read = async () => readMessageFiles((await readMessage(api, place, signal).catch(() => undefined)) ?? {});
      const { ids, sharedTs } = state.files.get(toMessageId(place)) ?? (await read());
      signal.throwIfAborted();
      // Deletes this message last, because its metadata names the message that shows its files.
      if (sharedTs !== undefined) await deleteMessage({ ...place, ts: sharedTs }, signal);
      await deleteMessage(place, signal);
      for (const file of ids) await api.call(place.teamId, "files.delete", { file }, signal).catch(() => {});
    },
  };
}
