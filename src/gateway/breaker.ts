import { randomUUID } from "node:crypto";
import type { GatewayError } from "./errors.ts";
import type { GatewayLimits } from "./limits.ts";

/** If the call that tests a paused model never ends, another call can test the model after this time. */
const HALF_OPEN_MS = 5_000;

/** Why and how long Palaver sends no calls to a model. */
export interface Pause {
  id: string;
  untilMs: number;
  /** From this time on, a call can test whether the pause is over. */
  probeAtMs: number;
  error: GatewayError;
  /** True if the gateway itself named the length of the pause. */
  isAsked: boolean;
}

export type Breaker = ReturnType<typeof createBreaker>;

export interface BreakerOptions {
  onPaused?: ((count: number) => void) | undefined;
}

/**
 * Keeps calls away from a model that asked for a pause or failed several times in a row. After the pause, one call
 * tests the model; further calls follow only if the model answers. Each process learns this separately.
 */
export function createBreaker(limits: GatewayLimits, { onPaused = () => {} }: BreakerOptions = {}) {
  const pauses = new Map<string, Pause>();
  /** Number of failures in a row, and of the pauses that they caused. */
  const troubles = new Map<string, { failures: number; pauses: number }>();

  function open(model: string, askedMs: number, error: GatewayError, isAsked: boolean): void {
    const [nowMs, forMs] = [performance.now(), Math.min(askedMs, limits.maxPauseMs)];
    if (forMs <= 0) return;
    const probeAtMs = nowMs + Math.min(forMs, limits.probeMs);
    pauses.set(model, { id: randomUUID(), isAsked, error, untilMs: nowMs + forMs, probeAtMs });
    onPaused(pauses.size);
  }

  return {
    /** Undefined if calls are allowed. If `waitMs` is 0, the pause is over, but no call has tested the model yet. */
    read(model: string): (Pause & { waitMs: number }) | undefined {
      const pause = pauses.get(model);
      return pause && { ...pause, waitMs: Math.max(0, Math.ceil(pause.untilMs - performance.now())) };
    },
    /** Returns true if this call may test the model. For a while after that, no other call may. */
    claim(model: string): boolean {
      const pause = pauses.get(model);
      const nowMs = performance.now();
      if (pause === undefined || nowMs < pause.probeAtMs) return false;
      pause.probeAtMs = nowMs + (nowMs < pause.untilMs ? limits.probeMs : HALF_OPEN_MS);
      return true;
    },
    failed(model: string, error: GatewayError, probed: Pause | undefined): void {
      const asked = error.retryAfterMs ?? 0;
      if (asked > 0) open(model, asked, error, true);
      // The request for the list of models names no model, so its failure pauses none.
      if (model === "") return;
      const { failures, pauses: times } = troubles.get(model) ?? { failures: 0, pauses: 0 };
      const isOver = probed !== undefined && performance.now() >= probed.untilMs;
      const isDown = failures + 1 >= limits.breakerFailures || isOver;
      troubles.set(model, { failures: failures + 1, pauses: isDown ? times + 1 : times });
      // A failure does not change a pause that is still running.
      const isPaused = (pauses.get(model)?.untilMs ?? 0) > performance.now();
      if (isDown && error.retryAfterMs === undefined && !isPaused) {
        open(model, Math.min(limits.breakerMaxMs, limits.breakerMs * 2 ** times), error, false);
      }
    },
    succeeded(model: string, probed: Pause | undefined): void {
      troubles.delete(model);
      const pause = pauses.get(model);
      if (pause === undefined || pause.id !== probed?.id) return;
      pauses.delete(model);
      onPaused(pauses.size);
    },
  };
}
