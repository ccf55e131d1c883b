import { rightHeld } from "../../../src/concurrency/fence.ts";
import { SinkError } from "../../../src/port/errors.ts";
import type { Draft, Fallback, Posted, Receipt } from "../../../src/port/sink.ts";
import type { SlackApi } from "../api/client.ts";
import { codeOf, isUncertain, readTs, SlackApiError } from "../api/error.ts";
import { type MessagePlace, type ToMark, toMessageId } from "../ids.ts";
import { checkLength, hasFeedback, isBlockRefusal, toButtonBlocks, toFoldBlocks, toMetadata } from "./blocks.ts";
import { closeCards, doubtCards, type TaskCards, toAddition, toCards, toFold, toTaskChunks } from "./cards.ts";
import type { ReplyPlace } from "./lookup.ts";
import { toSettledMarkdown, toSlackMarkdown } from "./markdown.ts";
import type { SinkState, Stream } from "./sink-state.ts";

/** Slack ends a stream five minutes after its start, even while it grows, and leaves a broken message. */
const MAX_AGE_MS = 240_000;
const NO_CARDS: TaskCards = new Map();

/** Slack's error codes for a stream that is over, and whose message can be updated. */
const OVER_CODES: ReadonlySet<string> = new Set(["message_not_in_streaming_state", "stopped_by_user"]);
/** Slack's error codes for a call that would have been accepted without its chunks. */
const CHUNK_CODES = new Set(["invalid_chunks", "invalid_arguments", "no_text"]);
/** Slack's error codes for a place where posts and updates would be refused as well. */
const NOWHERE =
  /^(not_in_channel|channel_not_found|is_archived|is_inactive|thread_not_found|message_not_found|invalid_auth|not_authed|account_inactive|token_\w+|app_not_installed)$/;
/** Codes of a workspace without streaming. */
const WORKSPACE_CODES = new Set([
  "unknown_method",
  "feature_not_enabled",
  "method_deprecated",
  "not_allowed_token_type",
  "missing_scope",
]);
/** Codes of a place, or a person, without streaming. */
const CHANNEL_CODES = new Set([
  "channel_type_not_supported",
  "messages_tab_disabled",
  "missing_recipient_team_id",
  "missing_recipient_user_id",
  "team_not_found",
  "user_not_found",
]);

type StreamState = Pick<SinkState, "streams" | "files" | "nonces" | "supports" | "markUnsupported">;

/** The person a stream is for: Slack requires it in channels. */
export interface Recipient {
  userId: string | undefined;
  teamId: string;
}

/**
 * Lets one message grow as a native stream. A stream that ends before its text is complete leaves the reply on the
 * fallback, which updates the message until it is complete.
 */
export interface StreamWriter {
  start(place: ReplyPlace, recipient: Recipient, draft: Draft, nonce: string, signal: AbortSignal): Promise<Posted>;
  /** Adds the missing text, or ends the stream with the last of it. */
  write(stream: Stream, draft: Draft, signal: AbortSignal): Promise<Receipt>;
  /** Ends a stream that an earlier attempt began and left. False for one that is not ours. */
  endOrphan(place: MessagePlace, nonce: string | undefined, signal: AbortSignal): Promise<boolean>;
}

export interface StreamDeps {
  api: SlackApi;
  state: StreamState;
  fallback: Fallback;
  toMark: ToMark;
  /** Unix milliseconds. */
  now(): number;
}

export function createStreamWriter(deps: StreamDeps): StreamWriter {
  const { api, state, fallback, toMark, now } = deps;

  return {
    async start({ teamId, channelId, threadTs }, recipient, draft, nonce, signal) {
      checkLength(draft);
      const text = toSettled(draft);
      const cards = toWanted(teamId, draft, NO_CARDS, state);
      const method = "chat.startStream";
      const where = { channel: channelId, thread_ts: threadTs, ...toRecipient(recipient) };
      const addition = toAddition(text, toTaskChunks(NO_CARDS, cards));
      try {
        // The mode "plan" folds the cards together, so they do not interrupt the text. It can only be set here.
        const answer = await api.call(teamId, method, { ...where, ...addition, task_display_mode: "plan" }, signal);
        const place = { teamId, channelId, ts: readTs(method, answer) };
        const id = toMessageId(place);
        const known = { startedAtMs: now(), isDoubtful: false, isStopped: false };
        state.streams.set(id, { place, nonce, right: rightHeld(), sent: text, cards, ...known });
        state.files.set(id, { ids: [] });
        return { id };
      } catch (error) {
        if (signal.aborted) throw error;
        if (noteCardRefusal(teamId, cards.size > 0, error, state)) {
          throw toRepostError(error, "The stream is begun without cards.");
        }
        noteRefusal(teamId, channelId, error, state);
        if (error instanceof SlackApiError && !isUncertain(error) && !NOWHERE.test(error.code)) {
          fallback.activate();
          if (error.retryAfterMs === undefined) throw toRepostError(error, "The reply is posted and updated instead.");
        }
        throw error;
      }
    },
    async write(stream, draft, signal) {
      if (stream.right !== rightHeld()) return fallBack(stream, deps);
      if (!draft.streaming) {
        if (stream.isStopped) return fallBack(stream, deps);
        checkLength(draft);
        const rest = stream.isDoubtful ? undefined : toRest(stream, toSlackMarkdown(draft.markdown));
        return stop(deps, stream, { draft, rest }, signal);
      }
      // The person pressed Stop: text that comes until the turn hears of that is not shown.
      if (stream.isStopped) return {};
      const text = toSettled(draft);
      const rest = toRest(stream, text);
      const isOld = now() - stream.startedAtMs > MAX_AGE_MS;
      const isTakenBack = rest === undefined && !stream.sent.startsWith(text);
      if (stream.isDoubtful || isOld || isTakenBack) return stop(deps, stream, { draft, rest: undefined }, signal);
      const cards = toWanted(stream.place.teamId, draft, stream.cards, state);
      return append(deps, stream, { text: rest ?? "", cards }, signal);
    },
    async endOrphan({ teamId, channelId, ts }, nonce, signal) {
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

/** Adds text and changed cards; makes no call where there is neither. */
async function append(
  deps: StreamDeps,
  stream: Stream,
  { text, cards }: { text: string; cards: TaskCards },
  signal: AbortSignal,
): Promise<Receipt> {
  const { teamId, channelId, ts } = stream.place;
  const tasks = toTaskChunks(stream.cards, cards);
  if (text === "" && tasks.length === 0) return {};
  const args = { channel: channelId, ts, ...toAddition(text, tasks) };
  try {
    await deps.api.call(teamId, "chat.appendStream", args, signal);
    Object.assign(stream, { sent: stream.sent + text, cards });
    return {};
  } catch (error) {
    if (codeOf(error) === "stopped_by_user") {
      stream.isStopped = true;
      deps.fallback.activate();
      return {};
    }
    if (OVER_CODES.has(codeOf(error))) return fallBack(stream, deps);
    if (isUnrelated(error)) throw error;
    if (noteCardRefusal(teamId, tasks.length > 0, error, deps.state)) return { isPartial: true };
    // Sent again, the text might stand there twice, or be refused again.
    stream.isDoubtful = true;
    if (!signal.aborted && !isUncertain(error)) return { isPartial: true };
    stream.cards = doubtCards(stream.cards, cards);
    throw error;
  }
}

/** Ends a stream with the last of its text; `rest` is undefined when it shows another text than the draft. */
async function stop(
  deps: StreamDeps,
  stream: Stream,
  { draft, rest }: { draft: Draft; rest: string | undefined },
  signal: AbortSignal,
): Promise<Receipt> {
  const { api, state, toMark } = deps;
  const { teamId, channelId, ts } = stream.place;
  const isComplete = rest !== undefined;
  const wanted = isComplete ? toWanted(teamId, draft, stream.cards, state) : stream.cards;
  const changed = toTaskChunks(stream.cards, closeCards(wanted));
  const tasks = !isComplete || wanted.size === 0 ? changed : [...changed, ...toFold(draft.steps ?? [])];
  const hasFeedbackButtons = isComplete && hasFeedback(draft.buttons) && state.supports("feedback buttons", teamId);
  const fold = state.supports("cards", teamId) ? [] : toFoldBlocks(draft.steps ?? []);
  const blocks = isComplete ? [...fold, ...toButtonBlocks(draft.buttons, { hasFeedbackButtons })] : [];
  const ending = { ...toAddition(rest ?? "", tasks), ...(blocks.length > 0 && { blocks }) };
  const metadata = toMetadata(toMark(stream.nonce));
  try {
    await api.call(teamId, "chat.stopStream", { channel: channelId, ts, metadata, ...ending }, signal);
  } catch (error) {
    if (OVER_CODES.has(codeOf(error))) return fallBack(stream, deps);
    if (isUnrelated(error)) throw error;
    if (noteCardRefusal(teamId, tasks.length > 0, error, state)) return { isPartial: true };
    if (hasFeedbackButtons && isBlockRefusal(error)) {
      state.markUnsupported("feedback buttons", teamId);
      return { isPartial: true };
    }
    // A stop that was refused for its content is made again without it. After a second refusal, or an uncertain one, the
    // message is updated instead.
    const isUnknown = signal.aborted || isUncertain(error);
    const receipt = isUnknown || stream.isDoubtful ? fallBack(stream, deps) : { isPartial: true };
    if (isUnknown) throw error;
    stream.isDoubtful = true;
    return receipt;
  }
  if (!isComplete) return fallBack(stream, deps);
  state.streams.delete(toMessageId(stream.place));
  return {};
}

/** The message goes on as one that is updated; until then it does not show all of its text. */
function fallBack({ place, nonce }: Stream, { state, fallback }: StreamDeps): Receipt {
  state.streams.delete(toMessageId(place));
  state.nonces.set(toMessageId(place), nonce);
  fallback.activate();
  return { isPartial: true };
}

/** The cards that a draft asks for, where the workspace supports them. */
function toWanted(teamId: string, { steps = [] }: Draft, before: TaskCards, state: StreamState): TaskCards {
  return state.supports("cards", teamId) ? toCards(steps, before) : before;
}

/** True for a call that was refused because of its cards. Notes that, so that the next call comes without. */
function noteCardRefusal(teamId: string, hasCards: boolean, error: unknown, state: StreamState): boolean {
  if (!hasCards || !state.supports("cards", teamId) || !CHUNK_CODES.has(codeOf(error))) return false;
  state.markUnsupported("cards", teamId);
  return true;
}

/** Takes note of a refusal to start a stream that holds for the workspace or the channel, not for this call alone. */
export function noteRefusal(
  teamId: string,
  channelId: string,
  error: unknown,
  state: Pick<StreamState, "markUnsupported">,
): void {
  const isMissing = error instanceof SlackApiError && error.status === 404;
  if (isMissing || WORKSPACE_CODES.has(codeOf(error))) state.markUnsupported("streams", teamId);
  else if (CHANNEL_CODES.has(codeOf(error))) state.markUnsupported("streams", teamId, channelId);
}

/** True for an error that says nothing about the stream: a rate limit, or a refusal of the place. */
function isUnrelated(error: unknown): boolean {
  return error instanceof SlackApiError && (error.retryAfterMs !== undefined || NOWHERE.test(error.code));
}

function toRecipient({ userId, teamId }: Recipient): object {
  return { recipient_team_id: teamId, ...(userId !== undefined && { recipient_user_id: userId }) };
}

/** Cuts a growing text to what may be added to a stream, from which nothing can be taken back. */
function toSettled({ source, markdown }: Draft): string {
  return toSettledMarkdown(source ?? markdown);
}

/** Undefined when the stream shows something else. */
function toRest({ sent }: Stream, text: string): string | undefined {
  return text.startsWith(sent) ? text.slice(sent.length) : undefined;
}

/** Says that nothing was written, so that the same post is made again at once, in the `way` that the sentence names. */
function toRepostError(error: unknown, way: string): SinkError {
  const words = error instanceof SlackApiError ? `${error.logMessage} ${way}` : way;
  return new SinkError("unavailable", words, { cause: error });
}
