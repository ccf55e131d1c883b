import { SinkError } from "../../../src/port/errors.ts";
import { identify, type Right } from "../../../src/port/right.ts";
import type { Draft, Fallback, Posted, Receipt } from "../../../src/port/sink.ts";
import { readSmallPrint } from "../../../src/text/sources.ts";
import type { SlackApi } from "../api/client.ts";
import { ApiError, codeOf, isUncertain, readTs } from "../api/error.ts";
import { type MessagePlace, type ToMark, toMessageId } from "../ids.ts";
import { closeCards, doubtCards, type TaskCards, toAddition, toCards, toFold, toTaskChunks } from "./cards.ts";
import {
  checkLength,
  hasFeedback,
  isBlockRefusal,
  toButtonBlocks,
  toFoldBlocks,
  toMetadata,
  toSourceBlocks,
} from "./draft.ts";
import type { ReplyPlace } from "./lookup.ts";
import { toSettledMarkdown, toSlackMarkdown } from "./markdown.ts";
import type { SinkState, Stream } from "./sink-state.ts";

/** The bot ends a stream at this age. After five minutes, Slack would end it and leave a broken message. */
const MAX_AGE_MS = 240_000;
const NO_CARDS: TaskCards = new Map();

/** Slack's codes for a stream that has ended. Its message can still be updated. */
const OVER_CODES: ReadonlySet<string> = new Set(["message_not_in_streaming_state", "stopped_by_user"]);
/** With these codes, Slack refused a call only because of its chunks. */
const CHUNK_CODES = new Set(["invalid_chunks", "invalid_arguments", "no_text"]);
/** With these codes, Slack would also refuse posts and updates in the same channel or thread. */
const NOWHERE =
  /^(not_in_channel|channel_not_found|is_archived|is_inactive|thread_not_found|message_not_found|invalid_auth|not_authed|account_inactive|token_\w+|app_not_installed)$/;
/** Slack's codes for a workspace without streaming. */
const WORKSPACE_CODES = new Set([
  "unknown_method",
  "feature_not_enabled",
  "method_deprecated",
  "not_allowed_token_type",
  "missing_scope",
]);
/** Slack's codes for a channel or a person without streaming. */
const CHANNEL_CODES = new Set([
  "channel_type_not_supported",
  "messages_tab_disabled",
  "missing_recipient_team_id",
  "missing_recipient_user_id",
  "team_not_found",
  "user_not_found",
]);

type StreamState = Pick<SinkState, "streams" | "files" | "nonces" | "supports" | "markUnsupported">;

/** The person for whom the stream is. Slack requires one in channels. */
export interface Recipient {
  userId: string | undefined;
  teamId: string;
}

/** If a stream ends before its text is complete, the reply switches to the fallback, which updates the message. */
export interface StreamWriter {
  start(place: ReplyPlace, recipient: Recipient, draft: Draft, nonce: string, signal: AbortSignal): Promise<Posted>;
  /** Adds the missing text, or ends the stream with the last part of it. */
  write(stream: Stream, draft: Draft, signal: AbortSignal): Promise<Receipt>;
  /** Ends a stream that an earlier attempt left open. Returns false if the stream is not the bot's. */
  endOrphan(place: MessagePlace, nonce: string | undefined, signal: AbortSignal): Promise<boolean>;
}

export interface StreamDeps {
  right: Right;
  api: SlackApi;
  state: StreamState;
  fallback: Fallback;
  toMark: ToMark;
  /** Unix milliseconds. */
  now(): number;
}

export function createStreamWriter(deps: StreamDeps): StreamWriter {
  const { api, state, fallback, toMark, now } = deps;
  const right = identify(deps.right);

  return {
    async start({ teamId, channelId, threadTs }, recipient, draft, nonce, signal) {
      checkLength(draft);
      const text = toSettled(draft);
      const cards = toWanted(teamId, draft, NO_CARDS, state);
      const method = "chat.startStream";
      const where = { channel: channelId, thread_ts: threadTs, ...toRecipient(recipient) };
      const addition = toAddition(text, toTaskChunks(NO_CARDS, cards));
      try {
        // In the mode "plan", Slack folds the cards together so that they do not interrupt the text. Slack accepts the
        // mode only here.
        const answer = await api.call(teamId, method, { ...where, ...addition, task_display_mode: "plan" }, signal);
        const place = { teamId, channelId, ts: readTs(method, answer) };
        const id = toMessageId(place);
        const known = { startedAtMs: now(), isDoubtful: false, isStopped: false };
        state.streams.set(id, { place, nonce, right, sent: text, cards, ...known });
        state.files.set(id, { ids: [] });
        return { id };
      } catch (error) {
        if (signal.aborted) throw error;
        if (noteCardRefusal(teamId, cards.size > 0, error, state)) {
          throw toRepostError(error, "Palaver retries the stream without cards.");
        }
        noteRefusal(teamId, channelId, error, state);
        if (error instanceof ApiError && !isUncertain(error) && !NOWHERE.test(error.code)) {
          fallback.activate();
          if (error.retryAfterMs === undefined) throw toRepostError(error, "Palaver posts and updates the reply.");
        }
        throw error;
      }
    },
    async write(stream, draft, signal) {
      if (stream.right !== right) return fallBack(stream, deps);
      if (!draft.streaming) {
        if (stream.isStopped) return fallBack(stream, deps);
        checkLength(draft);
        const rest = stream.isDoubtful
          ? undefined
          : toRest(stream, toSlackMarkdown(readSmallPrint(draft.markdown).text));
        return stop(deps, stream, { draft, rest }, signal);
      }
      // The person pressed Stop. Text that arrives before the turn learns of it is not shown.
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

/** Adds text and changed cards. Makes no call if there is neither. */
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
    // A retry could write the text twice, or Slack could refuse it again.
    stream.isDoubtful = true;
    if (!signal.aborted && !isUncertain(error)) return { isPartial: true };
    stream.cards = doubtCards(stream.cards, cards);
    throw error;
  }
}

/** Ends a stream with the rest of its text. `rest` is undefined if the stream shows other text than the draft. */
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
  const blocks = isComplete
    ? [...toSourceBlocks(draft), ...fold, ...toButtonBlocks(draft.buttons, { hasFeedbackButtons })]
    : [];
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
    // If Slack refuses a stop because of its content, the next attempt sends no content. After a second refusal, or if
    // it is unknown whether the stop succeeded, the bot updates the message instead.
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

/** Continues the reply with updates of this message. Until then, the message does not show its whole text. */
function fallBack({ place, nonce }: Stream, { state, fallback }: StreamDeps): Receipt {
  state.streams.delete(toMessageId(place));
  state.nonces.set(toMessageId(place), nonce);
  fallback.activate();
  return { isPartial: true };
}

function toWanted(teamId: string, { steps = [] }: Draft, before: TaskCards, state: StreamState): TaskCards {
  return state.supports("cards", teamId) ? toCards(steps, before) : before;
}

/** True if Slack refused the call because of its cards. Remembers this, so that the next call has no cards. */
function noteCardRefusal(teamId: string, hasCards: boolean, error: unknown, state: StreamState): boolean {
  if (!hasCards || !state.supports("cards", teamId) || !CHUNK_CODES.has(codeOf(error))) return false;
  state.markUnsupported("cards", teamId);
  return true;
}

/** Remembers a refusal to start a stream if it applies to the whole workspace or channel, not just to this call. */
export function noteRefusal(
  teamId: string,
  channelId: string,
  error: unknown,
  state: Pick<StreamState, "markUnsupported">,
): void {
  const isMissing = error instanceof ApiError && error.status === 404;
  if (isMissing || WORKSPACE_CODES.has(codeOf(error))) state.markUnsupported("streams", teamId);
  else if (CHANNEL_CODES.has(codeOf(error))) state.markUnsupported("streams", teamId, channelId);
}

/** True for an error that says nothing about the stream itself, such as a rate limit or a refusal by the channel. */
function isUnrelated(error: unknown): boolean {
  return error instanceof ApiError && (error.retryAfterMs !== undefined || NOWHERE.test(error.code));
}

function toRecipient({ userId, teamId }: Recipient): object {
  return { recipient_team_id: teamId, ...(userId !== undefined && { recipient_user_id: userId }) };
}

/** Truncates a growing text to the part that can go into a stream, because a stream cannot remove text. */
function toSettled({ source, markdown }: Draft): string {
  return toSettledMarkdown(source ?? markdown);
}

/** Undefined if the stream shows other text. */
function toRest({ sent }: Stream, text: string): string | undefined {
  return text.startsWith(sent) ? text.slice(sent.length) : undefined;
}

/** Creates an error: nothing was written and the same post must be repeated at once. `way` says how. */
function toRepostError(error: unknown, way: string): SinkError {
  const words = error instanceof ApiError ? `${error.logMessage} ${way}` : way;
  return new SinkError("unavailable", words, { cause: error });
}
