import { SinkError } from "../../../src/port/errors.ts";
import type { Draft, Posted, Receipt } from "../../../src/port/sink.ts";
import { readTs } from "../api/answer.ts";
import type { SlackApi } from "../api/client.ts";
import { codeOf } from "../api/error.ts";
import { readText } from "../api/wire.ts";
import { type MessagePlace, type ToMark, toMessageId } from "../ids.ts";
import { type Block, type Brought, hasJudging, type MessageBody, toMessageBody, toMetadata } from "./blocks.ts";
import type { ReplyPlace } from "./lookup.ts";
import type { Memory } from "./sink-state.ts";

/** Writes messages whole: posted, then updated. */
export interface WholeWriter {
  post(place: ReplyPlace, draft: Draft, nonce: string, signal: AbortSignal, more?: Accompanying): Promise<Posted>;
  update(place: MessagePlace, draft: Draft, nonce: string | undefined, signal: AbortSignal): Promise<Receipt>;
  remove(place: MessagePlace, signal: AbortSignal): Promise<void>;
}

/** What comes with the words. */
export interface Accompanying {
  /** Stand above them. */
  pictures?: readonly Block[];
  /** Were brought by a message before. */
  brought?: Brought;
}

export interface WholeDeps {
  api: SlackApi;
  memory: Pick<Memory, "takes" | "noteUntaken">;
  toMark: ToMark;
}

export function createWholeWriter({ api, memory, toMark }: WholeDeps): WholeWriter {
  /** Writes with Slack's own buttons for feedback where those are taken; where they turn out not to be, the next call does without. */
  async function write<T>(teamId: string, draft: Draft, make: (body: MessageBody) => Promise<T>): Promise<T> {
    const hasFeedbackButtons = hasJudging(draft.buttons) && memory.takes("feedback buttons", teamId);
    const body = toMessageBody(draft, { hasFeedbackButtons });
    try {
      return await make(body);
    } catch (error) {
      if (!hasFeedbackButtons || !isBlockRefusal(error)) throw error;
      memory.noteUntaken("feedback buttons", teamId);
      throw new SinkError("unavailable", "Slack takes no feedback buttons there: they come as plain ones.", {
        cause: error,
      });
    }
  }

  return {
    post({ teamId, channelId, threadTs }, draft, nonce, signal, { pictures = [], brought } = {}) {
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
            metadata: toMetadata(toMark(nonce), { draft, brought }),
            // A preview would be fetched for every address the model writes, whoever put it there.
            unfurl_links: false,
            unfurl_media: false,
          },
          signal,
        );
        // Posted to a person, it stands in the direct conversation with them.
        const channel = readText(answer["channel"]) ?? channelId;
        return { id: toMessageId({ teamId, channelId: channel, ts: readTs(method, answer) }) };
      });
    },
    update({ teamId, channelId, ts }, draft, nonce, signal) {
      const metadata = nonce === undefined ? undefined : toMetadata(toMark(nonce), { draft });
      return write(teamId, draft, async (body) => {
        // Unlike a post, an update reads plain words such as names of channels as markup when nothing else is said.
        const message = { ...body, parse: "none", ...(metadata && { metadata }) };
        await api.call(teamId, "chat.update", { channel: channelId, ts, ...message }, signal);
        return {};
      });
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

/** Whether Slack does not know one of the blocks. */
export function isBlockRefusal(error: unknown): boolean {
  return codeOf(error).startsWith("invalid_blocks");
}
