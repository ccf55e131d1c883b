import type { Logger } from "pino";
import { runWithin } from "../concurrency/deadlines.ts";
import { fitWindow } from "../conversation/conversation.ts";
import type { History } from "../history/history.ts";
import type { HistoryEntry } from "../history/record.ts";
import type { Adapter } from "../port/adapter.ts";
import type { EarlierMessage, MessageEvent } from "../port/events.ts";
import { toEntry } from "./context.ts";

/** Longest that an answer waits for what was said before it was asked for. */
const EARLIER_TIMEOUT_MS = 5_000;
const MAX_EARLIER_MESSAGES = 50;
/** Share of the model's window; the rest is for the conversation with the bot itself. */
const SHARE_OF_TOKENS = 0.5;

/**
 * Brings what people said in the same place before the first message of a conversation into its history. Does so once:
 * a conversation that has entries is left alone, and so is a private one. Best effort, with a bound in time; rejects only when `signal` aborts.
 */
export type BringEarlier = (first: MessageEvent, signal: AbortSignal) => Promise<void>;

export interface BringEarlierDeps {
  history: Pick<History, "isNew" | "begin">;
  adapterOf(platform: string): Pick<Adapter, "readEarlier">;
  /** The size of the whole window. */
  maxTokens: number;
  log: Logger;
}

export function createBringEarlier({ history, adapterOf, maxTokens, log }: BringEarlierDeps): BringEarlier {
  const limits = { maxEntries: MAX_EARLIER_MESSAGES, maxTokens: Math.floor(maxTokens * SHARE_OF_TOKENS) };

  return async (first, signal) => {
    const { conversationId, reply } = first;
    const adapter = adapterOf(reply.platform);
    // A private conversation takes up nothing that everybody said.
    if (adapter.readEarlier === undefined || reply.visibleTo !== undefined) return;
    const readEarlier = adapter.readEarlier.bind(adapter);
    try {
      if (!(await history.isNew(conversationId))) return;
      const said = await runWithin(EARLIER_TIMEOUT_MS, (signal) => readEarlier(first, signal), signal);
      await history.begin(conversationId, fitWindow(toEntries(said, first), limits).kept);
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error, conversationId }, "what was said before the bot was asked could not be read");
    }
  };
}

function toEntries(said: readonly EarlierMessage[], { messageId: askedId, reply }: MessageEvent): HistoryEntry[] {
  const entries = new Map<string, HistoryEntry>();
  for (const message of said) {
    const { messageId, text, attachments } = message;
    if (messageId === askedId || (text.trim() === "" && attachments.length === 0)) continue;
    entries.set(messageId, { ...toEntry({ ...message, reply }), isEarlier: true });
  }
  return [...entries.values()];
}
