import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { withoutFence } from "../concurrency/fence.ts";
import { createKeyedQueue } from "../concurrency/keyed-queue.ts";
import type { Adapter } from "../port/adapter.ts";
import type { MessageEvent } from "../port/events.ts";
import { callPlatform } from "../reply/platform-call.ts";
import { toKeyPart } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";

/** Longest that a mark stands. */
const TTL_MS = 86_400_000;
const CALL_MS = 5_000;
/** Between attempts at taking a mark away, which the platform's limits do not allow yet; and how many there are. */
const PAUSE_MS = 1_000;
const MAX_ATTEMPTS = 90;

/** Shows at people's questions that they wait for their turn, until it comes: in whichever process. Best effort. */
export interface WaitingMarks {
  show(message: MessageEvent): void;
  clear(messages: readonly MessageEvent[]): void;
}

export interface WaitingMarksDeps extends Pick<Stores, "open"> {
  adapterOf(platform: string): Pick<Adapter, "sink">;
  log: Logger;
}

export function createWaitingMarks({ open, adapterOf, log }: WaitingMarksDeps): WaitingMarks {
  const keyv = open("waiting");
  const { run: inTurn } = createKeyedQueue();

  function mark({ messageId, reply }: MessageEvent, isWaiting: boolean): void {
    const sink = adapterOf(reply.platform).sink(reply);
    const { markWaiting } = sink;
    if (markWaiting === undefined) return;
    const key = toKeyPart(messageId);
    const tell = () => callPlatform((signal) => markWaiting(messageId, isWaiting, signal), CALL_MS);
    async function change(): Promise<void> {
      try {
        if (isWaiting === (await keyv.has(key))) return;
        // Kept first: the process that takes the message up, also after a crash, knows that there may be a mark.
        if (isWaiting) await keyv.set(key, 1, TTL_MS);
        let attempts = 1;
        let isDone = await tell();
        const maxAttempts = isWaiting ? 1 : MAX_ATTEMPTS;
        while (!isDone && attempts < maxAttempts) {
          await sleep(PAUSE_MS, undefined, { ref: false });
          isDone = await tell();
          attempts += 1;
        }
        if (isDone !== isWaiting) await keyv.delete(key);
      } catch (err) {
        log.info({ err, messageId }, "the mark of a waiting message could not be set or removed");
      }
    }
    // Nothing of the turn depends on it, and it may outlast the right to write that.
    void withoutFence(() => inTurn(messageId, change));
  }

  return {
    show: (message) => mark(message, true),
    clear: (messages) => {
      for (const message of messages) mark(message, false);
    },
  };
}
