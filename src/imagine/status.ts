import { createNewest } from "../concurrency/newest.ts";
import { retry } from "../concurrency/retry.ts";
import { SinkError } from "../port/errors.ts";
import type { Draft, ReplySink } from "../port/sink.ts";
import { isRefusal } from "../reply/platform-call.ts";

/** Pauses before a call that must succeed is made again; a rate limit says itself how long. */
const PAUSES_MS = [500, 2_000, 5_000, 10_000] as const;
/** A platform that asks for more is asked again after this. */
const MAX_WAIT_MS = 30_000;

/** The message that says how far a job is. */
export interface Status {
  /** Shows this as soon as no other call is under way, the newest text only. Best effort. */
  show(draft: Draft): void;
  /** Leaves the message to the next attempt. Resolves when nothing of this one is written there any more. */
  leave(): Promise<void>;
  /** Leaves this as the last word, or takes the message away. Rejects when the platform does not answer. */
  close(draft: Draft | undefined, signal: AbortSignal): Promise<void>;
}

/** `shown` is what the message says already, where that is known. */
export function createStatus(sink: ReplySink, id: string, shown?: Draft): Status {
  /** The words that it shows, or will show once the newest call has ended. */
  let latest = shown?.markdown;
  /** Gives up what is being shown when there is a last word, or somebody else has it. */
  const closing = new AbortController();
  const drafts = createNewest<Draft | undefined>(async (draft) => {
    if (draft !== undefined && !closing.signal.aborted) await sink.edit(id, draft, closing.signal);
  }, undefined);

  async function leave(): Promise<void> {
    closing.abort("closed");
    await drafts.settled();
  }

  return {
    show(draft) {
      if (closing.signal.aborted || draft.markdown === latest) return;
      latest = draft.markdown;
      drafts.show(draft);
    },
    leave,
    async close(draft, signal) {
      await leave();
      try {
        await insist(async () => {
          if (draft === undefined) await sink.remove(id, signal);
          else await sink.edit(id, draft, signal);
        }, signal);
      } catch (error) {
        // People deleted the message, or removed the bot: they want no status.
        if (!isRefusal(error)) throw error;
      }
    },
  };
}

/** Repeats a call that was not answered, or asked for time. Rejects with a refusal or the last failure. */
export function insist<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return retry(call, { pausesMs: PAUSES_MS, mayPass: (error) => !isRefusal(error), askedMs }, signal);
}

function askedMs(error: unknown): number | undefined {
  const askedMs = error instanceof SinkError ? error.retryAfterMs : undefined;
  return askedMs && Math.min(askedMs, MAX_WAIT_MS);
}
