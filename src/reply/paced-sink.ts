import { untilAborted } from "../concurrency/deadlines.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Scheduler } from "../pacing/scheduler.ts";
import type { Adapter } from "../port/adapter.ts";
import { SinkError } from "../port/errors.ts";
import type { ReplyAddress } from "../port/events.ts";
import type { CallKind, Written } from "../port/pace.ts";
import type { Right } from "../port/right.ts";
import type { Fallback, ReplySink } from "../port/sink.ts";
import { callPlatform, toCallResult, toEditKind, toFailed } from "./platform-call.ts";

/** Timeout for a call, including its wait for the scheduler and for rate limits. */
const TURN_TIMEOUT_MS = 120_000;
const UPLOAD_TIMEOUT_MS = 60_000;
/** Marks the fallback as active, because a message that is complete from the start does not have to grow. */
const WHOLE: Fallback = { isActive: true, activate: () => {} };

/**
 * Creates a sink for messages that do not grow, such as pictures and notices. Its calls share the rate limits with
 * growing replies: they wait for their turn, and retry after a rate limit. Each call ends within a time limit. If a
 * reply to the same address is being written at the same time, `sink` is the sink of that reply.
 */
export type SinkOf = (address: ReplyAddress, sink?: ReplySink) => ReplySink;

export interface PacedSinkDeps {
  right: Right;
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

export function createPacedSinks({ adapterOf, scheduler, metrics, right }: PacedSinkDeps): SinkOf {
  return (address, sink = adapterOf(address.platform).sink(address, right)) => {
    const { platform } = address;

    async function attempt<T>(call: PacedCall<T>, signal: AbortSignal): Promise<T> {
      const timeoutMs = call.name === "upload" ? UPLOAD_TIMEOUT_MS : undefined;
      try {
        return await callPlatform(right, (timeout) => call.make(AbortSignal.any([timeout, signal])), timeoutMs);
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
      /** True while the call is in flight, and after it has ended. */
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
          ended.reject(error);
          return { answer: { ok: true }, behind: false, kind: call.kind };
        }
      }

      const fallback = sink.fallback === undefined ? undefined : WHOLE;
      const pace = scheduler.join(sink.budget, {
        write,
        room: sink.room,
        fallback,
        first: call.kind,
      });
      // An edit that is not final can wait. Every other call is final.
      if (call.kind === "edit") pace.text(1);
      else pace.end(bound).catch((error: unknown) => isAtWork || ended.reject(error));
      try {
        return await untilAborted(ended.promise, bound);
      } catch (error) {
        // Waits for the call in flight even if the caller gives up, because the caller may still remove the message.
        if (isAtWork) return await ended.promise;
        throw error;
      } finally {
        pace.leave();
      }
    }

    return {
      ...sink,
      post: (draft, nonce, signal, isFirst) =>
        inTurn({ name: "post", kind: "post", make: (signal) => sink.post(draft, nonce, signal, isFirst) }, signal),
      edit: (id, draft, signal) =>
        inTurn({ name: "edit", kind: toEditKind(draft), make: (signal) => sink.edit(id, draft, signal) }, signal),
      upload: (files, caption, nonce, signal) =>
        inTurn({ name: "upload", kind: "post", make: (signal) => sink.upload(files, caption, nonce, signal) }, signal),
      remove: (id, signal) =>
        inTurn({ name: "remove", kind: "final", make: (signal) => sink.remove(id, signal) }, signal),
    };
  };
}

function isRateLimit(error: unknown): error is SinkError {
  return error instanceof SinkError && error.kind === "rate-limited";
}
