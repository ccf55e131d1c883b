import type { Draft, Fallback, Receipt } from "../../../src/port/sink.ts";
import type { SlackApi } from "../api/client.ts";
import { codeOf, isUncertain, SlackApiError } from "../api/error.ts";
import { type ToMark, toMessageId } from "../ids.ts";
import { type ButtonLooks, hasJudging, toButtonBlocks, toMetadata } from "./blocks.ts";
import { type Cards, closeCards, doubtCards, toAddition, toCards, toTaskChunks } from "./cards.ts";
import { isBlockRefusal } from "./post-and-update.ts";
import type { Memory, Stream } from "./sink-state.ts";

/** The stream is over, and the message takes updates. */
export const OVER_CODES: ReadonlySet<string> = new Set(["message_not_in_streaming_state", "stopped_by_user"]);
/** The call would have been taken without its chunks. */
const CHUNK_CODES = new Set(["invalid_chunks", "invalid_arguments", "no_text"]);
/** A message that is posted, or updated, would be refused as well. */
export const NOWHERE =
  /^(not_in_channel|channel_not_found|is_archived|is_inactive|thread_not_found|message_not_found|invalid_auth|not_authed|account_inactive|token_\w+|app_not_installed)$/;

/** The calls that change a stream, and what follows from their answers. */
export interface StreamChanges {
  /** Adds a text and what is new of the cards; no call where that is nothing. */
  append(stream: Stream, text: string, cards: Cards, signal: AbortSignal): Promise<Receipt>;
  /** Ends it with the last of its text; `rest` is undefined when it shows another text than the draft. */
  stop(stream: Stream, rest: string | undefined, draft: Draft, signal: AbortSignal): Promise<Receipt>;
  /** The message goes on as one that is updated; what it shows until then is not all. */
  goWhole(stream: Stream): Receipt;
  /** The cards that a draft asks for, where there are any. */
  toWanted(teamId: string, draft: Draft, before: Cards): Cards;
  /** Whether a call was refused for the cards that came with it: then the next one comes without. */
  isCardRefusal(teamId: string, hasCards: boolean, error: unknown): boolean;
}

export interface StreamChangesDeps {
  api: SlackApi;
  memory: Memory;
  fallback: Fallback;
  toMark: ToMark;
}

export function createStreamChanges({ api, memory, fallback, toMark }: StreamChangesDeps): StreamChanges {
  function goWhole({ place, nonce }: Stream): Receipt {
    memory.streams.delete(toMessageId(place));
    memory.nonces.set(toMessageId(place), nonce);
    fallback.activate();
    return { isPartial: true };
  }

  function toWanted(teamId: string, { steps = [] }: Draft, before: Cards): Cards {
    return memory.takes("cards", teamId) ? toCards(steps, before) : before;
  }

  function isCardRefusal(teamId: string, hasCards: boolean, error: unknown): boolean {
    if (!hasCards || !memory.takes("cards", teamId) || !CHUNK_CODES.has(codeOf(error))) return false;
    memory.noteUntaken("cards", teamId);
    return true;
  }

  async function append(stream: Stream, text: string, cards: Cards, signal: AbortSignal): Promise<Receipt> {
    const { teamId, channelId, ts } = stream.place;
    const tasks = toTaskChunks(stream.cards, cards);
    if (text === "" && tasks.length === 0) return {};
    const args = { channel: channelId, ts, ...toAddition(text, tasks) };
    try {
      await api.call(teamId, "chat.appendStream", args, signal);
      Object.assign(stream, { sent: stream.sent + text, cards });
      return {};
    } catch (error) {
      if (codeOf(error) === "stopped_by_user") {
        stream.isStopped = true;
        fallback.activate();
        return {};
      }
      if (OVER_CODES.has(codeOf(error))) return goWhole(stream);
      if (isElsewhere(error)) throw error;
      if (isCardRefusal(teamId, tasks.length > 0, error)) return { isPartial: true };
      // Added again it might stand there twice, or be refused again.
      stream.isDoubtful = true;
      if (!signal.aborted && !isUncertain(error)) return { isPartial: true };
      stream.cards = doubtCards(stream.cards, cards);
      throw error;
    }
  }

  async function stop(stream: Stream, rest: string | undefined, draft: Draft, signal: AbortSignal): Promise<Receipt> {
    const { teamId, channelId, ts } = stream.place;
    const isWhole = rest !== undefined;
    const wanted = isWhole ? toWanted(teamId, draft, stream.cards) : stream.cards;
    const tasks = toTaskChunks(stream.cards, closeCards(wanted));
    const hasFeedbackButtons = isWhole && hasJudging(draft.buttons) && memory.takes("feedback buttons", teamId);
    const ending = { ...toAddition(rest ?? "", tasks), ...(isWhole && toEnd(draft, { hasFeedbackButtons })) };
    const metadata = toMetadata(toMark(stream.nonce));
    try {
      await api.call(teamId, "chat.stopStream", { channel: channelId, ts, metadata, ...ending }, signal);
    } catch (error) {
      if (OVER_CODES.has(codeOf(error))) return goWhole(stream);
      if (isElsewhere(error)) throw error;
      if (isCardRefusal(teamId, tasks.length > 0, error)) return { isPartial: true };
      if (hasFeedbackButtons && isBlockRefusal(error)) {
        memory.noteUntaken("feedback buttons", teamId);
        return { isPartial: true };
      }
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

  return { append, stop, goWhole, toWanted, isCardRefusal };
}

/** Whether it says nothing about the stream: a rate limit, or a refusal of the place. */
function isElsewhere(error: unknown): boolean {
  return error instanceof SlackApiError && (error.retryAfterMs !== undefined || NOWHERE.test(error.code));
}

function toEnd({ buttons }: Draft, looks: ButtonLooks): object {
  const blocks = toButtonBlocks(buttons, looks);
  return blocks.length === 0 ? {} : { blocks };
}
