import type { Draft, Posted, Receipt, SpareWay } from "../../src/adapter.ts";
import { SinkError } from "../../src/errors.ts";
import { readTs } from "./api/answer.ts";
import { codeOf, isUncertain, SlackApiError } from "./api/error.ts";
import type { SlackApi } from "./api.ts";
import { checkLength, toButtonBlocks, toMetadata } from "./blocks.ts";
import { type MessagePlace, toMessageId } from "./ids.ts";
import type { ReplyPlace } from "./lookup.ts";
import { toSettledMarkdown, toSlackMarkdown } from "./markdown.ts";
import type { Memory, Stream } from "./memory.ts";

/** Slack ends a stream five minutes after its start, whatever it does, and leaves a broken message. */
const MAX_AGE_MS = 240_000;
/** The stream is over, and the message takes updates. */
const OVER_CODES = new Set(["message_not_in_streaming_state", "stopped_by_user"]);
/** A message that is posted, or updated, would be refused as well. */
const NOWHERE =
  /^(not_in_channel|channel_not_found|is_archived|is_inactive|thread_not_found|message_not_found|restricted_action.*|invalid_auth|not_authed|account_inactive|token_\w+|app_not_installed)$/;

/** Whom a stream is for: channels want to know it. */
export interface Recipient {
  userId: string | undefined;
  teamId: string;
}

/**
 * Lets one message grow as a native stream, as far as that goes. Whatever ends a stream before its text is whole leaves
 * the reply on the spare way, where the message is written whole, and so shows in the end what it should.
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
  spare: SpareWay;
  now(): number;
}

export function createStreamWriter({ api, memory, spare, now }: StreamDeps): StreamWriter {
  /** The message goes on as one that is updated; what it shows until then is not all. */
  function goWhole({ place, nonce }: Stream): Receipt {
    memory.streams.delete(toMessageId(place));
    memory.nonces.set(toMessageId(place), nonce);
    spare.take();
    return { isPartial: true };
  }

  async function append(stream: Stream, text: string, signal: AbortSignal): Promise<Receipt> {
    const { teamId, channelId, ts } = stream.place;
    try {
      await api.call(teamId, "chat.appendStream", { channel: channelId, ts, markdown_text: text }, signal);
      stream.sent += text;
      return {};
    } catch (error) {
      if (codeOf(error) === "stopped_by_user") {
        stream.isStopped = true;
        spare.take();
        return {};
      }
      if (OVER_CODES.has(codeOf(error))) return goWhole(stream);
      if (isElsewhere(error)) throw error;
      // Added again it might stand there twice, or be refused again.
      stream.isDoubtful = true;
      if (signal.aborted || isUncertain(error)) throw error;
      return { isPartial: true };
    }
  }

  async function stop(stream: Stream, rest: string | undefined, draft: Draft, signal: AbortSignal): Promise<Receipt> {
    const { teamId, channelId, ts } = stream.place;
    const ending = rest === undefined ? {} : { ...(rest !== "" && { markdown_text: rest }), ...toEnd(draft) };
    const metadata = toMetadata(stream.nonce);
    try {
      await api.call(teamId, "chat.stopStream", { channel: channelId, ts, metadata, ...ending }, signal);
    } catch (error) {
      if (OVER_CODES.has(codeOf(error))) return goWhole(stream);
      if (isElsewhere(error)) throw error;
      // Refused for what it was to add, it is ended without that; refused once more, or not heard of, an update tells.
      const isUnknown = signal.aborted || isUncertain(error);
      const receipt = isUnknown || stream.isDoubtful ? goWhole(stream) : { isPartial: true };
      if (isUnknown) throw error;
      stream.isDoubtful = true;
      return receipt;
    }
    if (rest === undefined) return goWhole(stream);
    memory.streams.delete(toMessageId(stream.place));
    return {};
  }

  return {
    async start({ teamId, channelId, threadTs }, recipient, draft, nonce, signal) {
      checkLength(draft);
      const text = toSettled(draft);
      const method = "chat.startStream";
      const args = { channel: channelId, thread_ts: threadTs, ...toRecipient(recipient) };
      try {
        const answer = await api.call(teamId, method, { ...args, ...(text !== "" && { markdown_text: text }) }, signal);
        const place = { teamId, channelId, ts: readTs(method, answer) };
        const id = toMessageId(place);
        const stream = { place, nonce, sent: text, startedAtMs: now(), isDoubtful: false, isStopped: false };
        memory.streams.set(id, stream);
        return { id };
      } catch (error) {
        if (signal.aborted) throw error;
        memory.noteRefusal(teamId, channelId, error);
        if (error instanceof SlackApiError && !isUncertain(error) && !NOWHERE.test(error.code)) {
          spare.take();
          if (error.retryAfterMs === undefined) throw toDetour(error);
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
      return rest === undefined || rest === "" ? {} : append(stream, rest, signal);
    },
    async takeOver({ teamId, channelId, ts }, nonce, signal) {
      const metadata = nonce === undefined ? undefined : toMetadata(nonce);
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

/** Whether it says nothing about the stream: a rate limit, or a refusal of the place. */
function isElsewhere(error: unknown): boolean {
  return error instanceof SlackApiError && (error.retryAfterMs !== undefined || NOWHERE.test(error.code));
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

function toEnd({ buttons }: Draft): object {
  const blocks = toButtonBlocks(buttons);
  return blocks.length === 0 ? {} : { blocks };
}

/** Nothing was written, and the same post goes the other way at once. */
function toDetour(error: SlackApiError): SinkError {
  return new SinkError("unavailable", `${error.message} The reply is posted and updated instead.`, { cause: error });
}
