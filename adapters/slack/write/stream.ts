import { SinkError } from "../../../src/port/errors.ts";
import type { Draft, Fallback, Posted, Receipt } from "../../../src/port/sink.ts";
import { readTs } from "../api/answer.ts";
import type { SlackApi } from "../api/client.ts";
import { codeOf, isUncertain, SlackApiError } from "../api/error.ts";
import { type MessagePlace, type ToMark, toMessageId } from "../ids.ts";
import { checkLength, toMetadata } from "./blocks.ts";
import { type Cards, toAddition, toTaskChunks } from "./cards.ts";
import type { ReplyPlace } from "./lookup.ts";
import { toSettledMarkdown, toSlackMarkdown } from "./markdown.ts";
import type { Memory, Stream } from "./sink-state.ts";
import { createStreamChanges, NOWHERE, OVER_CODES } from "./stream-changes.ts";

/** Slack ends a stream five minutes after its start, whatever it does, and leaves a broken message. */
const MAX_AGE_MS = 240_000;
const NO_CARDS: Cards = new Map();

/** Whom a stream is for: channels want to know it. */
export interface Recipient {
  userId: string | undefined;
  teamId: string;
}

/**
 * Lets one message grow as a native stream, as far as that goes. Whatever ends a stream before its text is whole leaves
 * the reply on the fallback, where the message is written whole, and so shows in the end what it should.
 */
export interface StreamWriter {
  start(place: ReplyPlace, recipient: Recipient, draft: Draft, nonce: string, signal: AbortSignal): Promise<Posted>;
  /** Adds what is missing, or ends the stream with the last of it. */
  write(stream: Stream, draft: Draft, signal: AbortSignal): Promise<Receipt>;
  /** Ends a stream that an earlier run began. False for one that is not ours. */
  takeOver(place: MessagePlace, nonce: string | undefined, signal: AbortSignal): Promise<boolean>;
}

export interface StreamDeps {
  api: SlackApi;
  memory: Memory;
  fallback: Fallback;
  toMark: ToMark;
  now(): number;
}

export function createStreamWriter({ api, memory, fallback, toMark, now }: StreamDeps): StreamWriter {
  const { append, stop, goWhole, toWanted, isCardRefusal } = createStreamChanges({ api, memory, fallback, toMark });

  return {
    async start({ teamId, channelId, threadTs }, recipient, draft, nonce, signal) {
      checkLength(draft);
      const text = toSettled(draft);
      const cards = toWanted(teamId, draft, NO_CARDS);
      const method = "chat.startStream";
      const where = { channel: channelId, thread_ts: threadTs, ...toRecipient(recipient) };
      const addition = toAddition(text, toTaskChunks(NO_CARDS, cards));
      try {
        // Together and folded, the cards leave the text in one piece. How they look is settled with the start.
        const answer = await api.call(teamId, method, { ...where, ...addition, task_display_mode: "plan" }, signal);
        const place = { teamId, channelId, ts: readTs(method, answer) };
        const id = toMessageId(place);
        const state = { startedAtMs: now(), isDoubtful: false, isStopped: false };
        memory.streams.set(id, { place, nonce, sent: text, cards, ...state });
        return { id };
      } catch (error) {
        if (signal.aborted) throw error;
        if (isCardRefusal(teamId, cards.size > 0, error)) throw toDetour(error, "The stream is begun without cards.");
        memory.noteRefusal(teamId, channelId, error);
        if (error instanceof SlackApiError && !isUncertain(error) && !NOWHERE.test(error.code)) {
          fallback.activate();
          if (error.retryAfterMs === undefined) throw toDetour(error, "The reply is posted and updated instead.");
        }
        throw error;
      }
    },
    async write(stream, draft, signal) {
      if (!draft.streaming) {
        if (stream.isStopped) return goWhole(stream);
        checkLength(draft);
        const rest = stream.isDoubtful ? undefined : toRest(stream, toSlackMarkdown(draft.markdown));
        return stop(stream, rest, draft, signal);
      }
      // The person wants no more of it: what comes until the turn has heard of that is not shown.
      if (stream.isStopped) return {};
      const text = toSettled(draft);
      const rest = toRest(stream, text);
      const isOld = now() - stream.startedAtMs > MAX_AGE_MS;
      const isTakenBack = rest === undefined && !stream.sent.startsWith(text);
      if (stream.isDoubtful || isOld || isTakenBack) return stop(stream, undefined, draft, signal);
      return append(stream, rest ?? "", toWanted(stream.place.teamId, draft, stream.cards), signal);
    },
    async takeOver({ teamId, channelId, ts }, nonce, signal) {
      const metadata = nonce === undefined ? undefined : toMetadata(toMark(nonce));
      try {
        await api.call(teamId, "chat.stopStream", { channel: channelId, ts, ...(metadata && { metadata }) }, signal);
      } catch (error) {
        if (codeOf(error) === "message_not_owned_by_app") return false;
        if (!OVER_CODES.has(codeOf(error))) throw error;
      }
      return true;
    },
  };
}

function toRecipient({ userId, teamId }: Recipient): object {
  return { recipient_team_id: teamId, ...(userId !== undefined && { recipient_user_id: userId }) };
}

/** What of a growing text may be added to a stream, from which nothing can be taken back. */
function toSettled({ source, markdown }: Draft): string {
  return toSettledMarkdown(source ?? markdown);
}

/** Undefined when the stream shows something else. */
function toRest({ sent }: Stream, text: string): string | undefined {
  return text.startsWith(sent) ? text.slice(sent.length) : undefined;
}

/** Nothing was written, and the same post goes another way at once. */
function toDetour(error: unknown, way: string): SinkError {
  const words = error instanceof SlackApiError ? `${error.logMessage} ${way}` : way;
  return new SinkError("unavailable", words, { cause: error });
}
