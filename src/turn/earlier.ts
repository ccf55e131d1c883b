import type { Logger } from "pino";
import { runWithin } from "../concurrency/deadlines.ts";
import type { History } from "../history/history.ts";
import type { Adapter } from "../port/adapter.ts";
import type { MessageEvent } from "../port/events.ts";
import { toEarlierEntries } from "./entries.ts";

/** Longest that an answer waits for what was said before it was asked for. */
const EARLIER_TIMEOUT_MS = 5_000;
/** The newest of a thread: more than any usual window shows. */
const MAX_EARLIER_MESSAGES = 400;
/** Unix milliseconds that stand for a place whose earlier messages were never read. */
const NOTHING_YET = 0;
const ONLY_A_PART = "_I could read only a part of what was said here before._";
const NOTHING = "_I could not read what was said here before._";

/**
 * Brings what people and apps said in the same thread before the newest of these questions, which are answered together,
 * and what the history has not, into it: all of it for the first question of a conversation, and what was said since the
 * question before for every other one. A private conversation is left alone. Best effort, with a bound in time; rejects
 * only when `signal` aborts. Resolves to a sentence for people where what came before their first question could not be
 * read, or only a part of it.
 */
export type BringEarlier = (questions: readonly MessageEvent[], signal: AbortSignal) => Promise<string | undefined>;

/** Keeps overheard messages for the next answer, if their conversation has a history. Never rejects. */
export type Overhear = (messages: readonly MessageEvent[]) => Promise<void>;

export interface BringEarlierDeps {
  history: Pick<History, "broughtUntil" | "bring">;
  adapterOf(platform: string): Pick<Adapter, "readEarlier">;
  log: Logger;
}

export function createBringEarlier({ history, adapterOf, log }: BringEarlierDeps): BringEarlier {
  return async (questions, signal) => {
    const newest = questions.at(-1);
    if (newest === undefined) return undefined;
    const { conversationId, reply, at } = newest;
    const adapter = adapterOf(reply.platform);
    // A private conversation takes up nothing that everybody said.
    if (adapter.readEarlier === undefined || reply.visibleTo !== undefined) return undefined;
    const readEarlier = adapter.readEarlier.bind(adapter);
    let until: number | undefined;
    try {
      until = (await history.broughtUntil(conversationId)) ?? NOTHING_YET;
      if (until >= at) {
        if (until === Infinity) await history.bring(conversationId, [], at);
        return undefined;
      }
      const range = { ...(until > NOTHING_YET && { since: until }), maxMessages: MAX_EARLIER_MESSAGES };
      const reading = (signal: AbortSignal) => readEarlier(newest, range, signal);
      const { messages, isPartial = false } = await runWithin(EARLIER_TIMEOUT_MS, reading, signal);
      // Questions keep their places among what others said between them, and are stored as such where they stand.
      const own = new Set(questions.filter(isOnBranch).map(({ messageId }) => messageId)).add(newest.messageId);
      const read = new Set([...own, ...messages.map(({ messageId }) => messageId)]);
      // An attempt before this one read up to a question that it could not store any more.
      const unread = questions.filter(({ messageId }) => !read.has(messageId));
      const others = messages.filter(({ messageId }) => !own.has(messageId));
      const said = [...unread, ...others].toSorted((a, b) => a.at - b.at);
      // The next question may read the missing part.
      const readUntil = isPartial ? Math.max(until, ...said.map((message) => message.at)) : at;
      await history.bring(conversationId, toEarlierEntries(said, reply), readUntil);
      return isPartial && until === NOTHING_YET ? ONLY_A_PART : undefined;
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error, conversationId }, "earlier messages of a thread could not be read");
      // The next question tries again: without a word, an answer would make it look as if everything were here.
      if (until !== NOTHING_YET) return undefined;
      await history.bring(conversationId, [], NOTHING_YET).catch(() => {});
      return NOTHING;
    }
  };
}

/** True for a question that follows one message alone, and is stored behind that. */
function isOnBranch({ inReplyTo }: MessageEvent): boolean {
  return inReplyTo !== undefined;
}

export function createOverhear(history: Pick<History, "isNew" | "append">, log: Logger): Overhear {
  return async (messages) => {
    for (const message of messages) {
      const { conversationId, reply, inReplyTo } = message;
      try {
        // Without a history people only speak to each other.
        if (await history.isNew(conversationId)) continue;
        const [entry] = toEarlierEntries([message], reply);
        if (entry !== undefined) await history.append(conversationId, entry, [], inReplyTo);
      } catch (error) {
        log.warn({ err: error, conversationId }, "a message to others could not be stored");
      }
    }
  };
}
