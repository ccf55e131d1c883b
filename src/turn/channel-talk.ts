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
 * Reads the last messages of the channel around a question, or around its thread's first message, without those of the
 * question's own conversation: the branch has them, or they belong to another branch of it. Reads none for a private
 * question, and stores none. Best effort, bounded in time; rejects only when `signal` aborts.
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
  return async ({ reply, messageIds, conversationId }, { entries, first }, maxMessages, signal) => {
    const adapter = adapterOf(reply.platform);
    if (adapter.readChannel === undefined || maxMessages < 1 || reply.visibleTo !== undefined) return [];
    const readChannel = adapter.readChannel.bind(adapter);
    // A thread that others began has no question of ours in the channel.
    const began = first === undefined || first.isEarlier === true ? [] : [first.id];
    const ids = [...messageIds.toReversed(), ...began];
    try {
      const said = await runWithin(TALK_TIMEOUT_MS, (signal) => readChannel(reply, ids, maxMessages, signal), signal);
      // A question may not be in the history yet.
      const known = new Set([...ids, ...entries.map(({ id }) => id)]);
      const places = await Promise.all(said.map(({ messageId }) => history.find(messageId)));
      const isTalk = ({ messageId }: EarlierMessage, index: number) =>
        !known.has(messageId) && places[index]?.conversationId !== conversationId;
      return toEarlierEntries(said.filter(isTalk), reply);
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error, conversationId }, "the channel around a question could not be read");
      return [];
    }
  };
}
