import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { createKeyedQueue } from "../concurrency/keyed-queue.ts";
import type { Adapter } from "../port/adapter.ts";
import type { MessageEvent } from "../port/events.ts";
import { NO_RIGHT } from "../port/right.ts";
import { callPlatform } from "../reply/platform-call.ts";
import { toKeyPart } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";

const TTL_MS = 86_400_000;

const CALL_MS = 5_000;

/** The pause before another attempt to remove a mark, and the number of attempts. Rate limits can delay the removal. */
const PAUSE_MS = 1_000;

const MAX_ATTEMPTS = 90;

/**
 * Marks a question on the platform while it waits for its turn. Any process can remove the mark. Ignores failures.
 * Needs no right (`NO_RIGHT`): nothing depends on a mark, and a mark can stay longer than its turn runs.
 */
export interface WaitingMarks {
  show(message: MessageEvent): void;
  clear(messages: readonly MessageEvent[]): void;
}

interface WaitingMarksDeps extends Pick<Stores, "open"> {
  adapterOf(platform: string): Pick<Adapter, "sink">;
  log: Logger;
}

export function createWaitingMarks({ open, adapterOf, log }: WaitingMarksDeps): WaitingMarks {
  const keyv = open("waiting");
  const { run: inTurn } = createKeyedQueue();

  function mark({ messageId, reply }: MessageEvent, isWaiting: boolean): void {
    const sink = adapterOf(reply.platform).sink(reply, NO_RIGHT);
    const { markWaiting } = sink;
    if (markWaiting === undefined) return;
    const key = toKeyPart(messageId);
    const tell = () => callPlatform(NO_RIGHT, (signal) => markWaiting(messageId, isWaiting, signal), CALL_MS);
    async function change(): Promise<void> {
      try {
        if (isWaiting === (await keyv.has(key))) return;
        // Stores the mark before the platform shows it, so that the process that starts the turn knows about it.
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
    void inTurn(messageId, change);
  }

  return {
    show: (message) => mark(message, true),
    clear: (messages) => {
      for (const message of messages) mark(message, false);
    },
  };
}
