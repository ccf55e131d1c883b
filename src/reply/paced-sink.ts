import { untilAborted } from "../concurrency/deadlines.ts";
import { keepFences } from "../concurrency/fence.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Scheduler } from "../pacing/scheduler.ts";
import type { Adapter } from "../port/adapter.ts";
import { SinkError } from "../port/errors.ts";
import type { ReplyAddress } from "../port/events.ts";
import type { CallKind, Written } from "../port/pace.ts";
import type { Draft, Fallback, ReplySink } from "../port/sink.ts";
import { callPlatform, toCallResult, toFailed } from "./platform-call.ts";

/** Longest that a call waits for its turn, refusals for the rate included. */
const TURN_TIMEOUT_MS = 120_000;
/** Longest that the platform may take for files. */
const UPLOAD_TIMEOUT_MS = 60_000;
/** A message that is whole from the beginning gains nothing from the way of writing that lets it grow. */
const WHOLE: Fallback = { isActive: true, activate: () => {} };

/**
 * A sink for what is no growing reply, such as pictures and notices. Its calls share the budget of the replies beside
 * them and wait for their turn in it, are made again when the platform asks for time, and have an end in every case.
 */
export type SinkOf = (address: ReplyAddress) => ReplySink;

export interface PacedSinkDeps {
  adapterOf(platform: string): Pick<Adapter, "sink">;
  scheduler: Pick<Scheduler, "join">;
  metrics: Pick<Metrics, "platformCall" | "rateLimited">;
}

type CallName = "post" | "edit" | "upload" | "remove";

interface PacedCall<T> {
  name: CallName;
  kind: CallKind;
  make(signal: AbortSignal): Promise<T>;
}

export function createPacedSinks({ adapterOf, scheduler, metrics }: PacedSinkDeps): SinkOf {
  return (address) => {
    const { platform } = address;
    const sink = adapterOf(platform).sink(address);

    async function attempt<T>(call: PacedCall<T>, signal: AbortSignal): Promise<T> {
      const timeoutMs = call.name === "upload" ? UPLOAD_TIMEOUT_MS : undefined;
      try {
        return await callPlatform((timeout) => call.make(AbortSignal.any([timeout, signal])), timeoutMs);
      } catch (error) {
        if (isRateLimit(error)) metrics.rateLimited("platform");
        throw error;
      } finally {
        metrics.platformCall(platform, call.name);
      }
    }

    async function inTurn<T>(call: PacedCall<T>, signal: AbortSignal): Promise<T> {
      signal.throwIfAborted();
      const bound = AbortSignal.any([signal, AbortSignal.timeout(TURN_TIMEOUT_MS)]);
      const ended = Promise.withResolvers<T>();
      /** A call is under way, or has ended. */
      let isAtWork = false;

      async function write(): Promise<Written> {
        isAtWork = true;
        try {
          const result = await attempt(call, bound);
          ended.resolve(result);
          return { answer: toCallResult(result ?? {}), behind: false, kind: call.kind };
        } catch (error) {
          if (isRateLimit(error) && !bound.aborted) {
            isAtWork = false;
            return { answer: toFailed(error), behind: true, kind: call.kind };
          }
          // The caller decides about every other failure.
          ended.reject(error);
          return { answer: { ok: true }, behind: false, kind: call.kind };
        }
      }

      const fallback = sink.fallback === undefined ? undefined : WHOLE;
      const pace = scheduler.join(sink.budget, {
        write: keepFences(write),
        room: sink.room,
        fallback,
        first: call.kind,
      });
      // An edit on the way may wait, as those of a reply that grows do; everything else is a last word.
      if (call.kind === "edit") pace.text(1);
      else pace.end(bound).catch((error: unknown) => isAtWork || ended.reject(error));
      try {
        return await untilAborted(ended.promise, bound);
      } catch (error) {
        // One call of a message at a time, and a caller that gives a message up may want to take it back.
        if (isAtWork) return await ended.promise;
        throw error;
      } finally {
        pace.leave();
      }
    }

    return {
      ...sink,
      post: (draft, nonce, signal) =>
        inTurn({ name: "post", kind: "post", make: (signal) => sink.post(draft, nonce, signal) }, signal),
      edit: (id, draft, signal) =>
        inTurn({ name: "edit", kind: toEditKind(draft), make: (signal) => sink.edit(id, draft, signal) }, signal),
      upload: (files, caption, nonce, signal) =>
        inTurn({ name: "upload", kind: "post", make: (signal) => sink.upload(files, caption, nonce, signal) }, signal),
      remove: (id, signal) =>
        inTurn({ name: "remove", kind: "final", make: (signal) => sink.remove(id, signal) }, signal),
    };
  };
}

/** A message with a Stop button will change again. */
function toEditKind({ buttons }: Draft): CallKind {
  return buttons.some(({ action }) => action === "stop") ? "edit" : "final";
}

function isRateLimit(error: unknown): error is SinkError {
  return error instanceof SinkError && error.kind === "rate-limited";
}
