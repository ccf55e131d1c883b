import type { Logger } from "pino";
import { runWithin } from "../concurrency/deadlines.ts";
import type { History } from "../history/history.ts";
import type { HistoryEntry } from "../history/record.ts";
import type { Adapter } from "../port/adapter.ts";
import type { EarlierMessage } from "../port/events.ts";
import { toEarlierEntries } from "./entries.ts";
import type { TurnRecord } from "./record.ts";

/** Longest that an answer waits for the channel around its question. */
const TALK_TIMEOUT_MS = 5_000;

/**
 * Reads the last messages of the channel around a question, or around its thread's beginning, without those the branch
 * has; none for a private question. They are stored nowhere. Best effort, bounded in time; rejects only when `signal`
 * aborts.
 */
export type ReadChannelTalk = (
  record: TurnRecord,
  branch: Branch,
  maxMessages: number,
  signal: AbortSignal,
) => Promise<HistoryEntry[]>;

/** The entries of a conversation that a question goes on with, and the one that it began with. */
export interface Branch {
  entries: readonly HistoryEntry[];
  first: HistoryEntry | undefined;
}

export interface ChannelTalkDeps {
  history: Pick<History, "find">;
  adapterOf(platform: string): Pick<Adapter, "readChannel">;
  log: Logger;
}

export function createReadChannelTalk({ history, adapterOf, log }: ChannelTalkDeps): ReadChannelTalk {
  /** An answer is in the history under the id of its turn. */
  async function entryIdOf({ messageId, by }: EarlierMessage): Promise<string> {
    return by === "bot" ? ((await history.find(messageId))?.entryId ?? messageId) : messageId;
  }

  return async ({ reply, messageIds, conversationId }, { entries, first }, maxMessages, signal) => {
    const adapter = adapterOf(reply.platform);
    if (adapter.readChannel === undefined || maxMessages < 1 || reply.visibleTo !== undefined) return [];
    const readChannel = adapter.readChannel.bind(adapter);
    // A thread that others began has no question of ours in the channel.
    const began = first === undefined || first.isEarlier === true ? [] : [first.id];
    const ids = [...messageIds.toReversed(), ...began];
    try {
      const said = await runWithin(TALK_TIMEOUT_MS, (signal) => readChannel(reply, ids, maxMessages, signal), signal);
      const known = new Set([...ids, ...entries.map(({ id }) => id)]);
      const entryIds = await Promise.all(said.map(entryIdOf));
      return toEarlierEntries(
        said.filter((_, index) => !known.has(entryIds[index] ?? "")),
        reply,
      );
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error, conversationId }, "the channel around a question could not be read");
      return [];
    }
  };
}
