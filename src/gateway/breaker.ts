import { randomUUID } from "node:crypto";
import { GatewayError, type GatewayErrorKind } from "./errors.ts";
import type { GatewayLimits } from "./limits.ts";

/** Milliseconds until another probe of a pause may start when the last one never ended. */
const HALF_OPEN_MS = 5_000;

/** A model is left alone: it asked for that, or failed again and again. */
export interface Pause {
  id: string;
  untilMs: number;
  /** The first moment at which a call may find out if it is over. */
  probeAtMs: number;
  error: GatewayError;
  /** The gateway itself named the time. */
  isAsked: boolean;
}

export interface ToldPause {
  kind: GatewayErrorKind;
  message: string;
  status?: number;
  id?: string;
  isAsked?: boolean;
}

/** Processes that use one key tell each other what models ask for; `forMs` of 0: that is over. */
export interface PauseBoard {
  tell(model: string, pause: ToldPause, forMs: number): void;
  listen(onTold: (model: string, pause: ToldPause, forMs: number) => void): Promise<void>;
  /** Resolves to true for the first process that claims it within `forMs`; also where nobody can tell. */
  claim(what: string, forMs: number): Promise<boolean>;
}

export type Breaker = ReturnType<typeof createBreaker>;

export interface BreakerOptions {
  board?: PauseBoard | undefined;
  /** Told how many models are left alone, whenever that changes. */
  onPaused?: ((count: number) => void) | undefined;
}

/**
 * Keeps calls away from a model that asked for a pause, or that failed again and again, in all processes on one board. When
 * the pause is over, one call of one process finds out whether the model answers; the others follow, or wait again.
 */
export function createBreaker(limits: GatewayLimits, { board, onPaused = () => {} }: BreakerOptions = {}) {
  const pauses = new Map<string, Pause>();
  /** Failures in a row, and how often the model was left alone because of them. */
  const troubles = new Map<string, { failures: number; pauses: number }>();
  void board?.listen((model, { kind, message, id = "", isAsked = true, ...rest }, forMs) => {
    if (forMs === 0) return lift(model);
    set(model, forMs, { id, isAsked, error: new GatewayError(kind, message, { ...rest, retryAfterMs: forMs }) });
  });

  function set(model: string, forMs: number, pause: Pick<Pause, "id" | "isAsked" | "error">): void {
    const nowMs = performance.now();
    const probeAtMs = nowMs + Math.min(forMs, limits.probeMs);
    pauses.set(model, { ...pause, untilMs: nowMs + forMs, probeAtMs });
    onPaused(pauses.size);
  }

  function lift(model: string): void {
    troubles.delete(model);
    pauses.delete(model);
    onPaused(pauses.size);
  }

  function open(model: string, askedMs: number, error: GatewayError, isAsked: boolean): void {
    const [id, forMs] = [randomUUID(), Math.min(askedMs, limits.maxPauseMs)];
    if (forMs <= 0) return;
    set(model, forMs, { id, isAsked, error });
    board?.tell(model, toTold({ id, isAsked, error }), forMs);
  }

  return {
    /** Undefined: calls may be made. `waitMs` of 0: the pause is over, and nobody knows yet whether the model answers. */
    read(model: string): (Pause & { waitMs: number }) | undefined {
      const pause = pauses.get(model);
      return pause && { ...pause, waitMs: Math.max(0, Math.ceil(pause.untilMs - performance.now())) };
    },
    /** Lets one call find out, and the next one only after a while. */
    async claim(model: string): Promise<boolean> {
      const pause = pauses.get(model);
      const nowMs = performance.now();
      if (pause === undefined || nowMs < pause.probeAtMs) return false;
      const forMs = nowMs < pause.untilMs ? limits.probeMs : HALF_OPEN_MS;
      pause.probeAtMs = nowMs + forMs;
      return board === undefined || forMs === 0 || board.claim(`${model} ${pause.id}`, forMs);
    },
    /** `probed`: the pause in spite of which the call was made. */
    failed(model: string, error: GatewayError, probed: Pause | undefined): void {
      const asked = error.retryAfterMs ?? 0;
      if (asked > 0) open(model, asked, error, true);
      // The list of models is asked for to find out just that.
      if (model === "") return;
      const { failures, pauses: times } = troubles.get(model) ?? { failures: 0, pauses: 0 };
      const isOver = probed !== undefined && performance.now() >= probed.untilMs;
      const isDown = failures + 1 >= limits.breakerFailures || isOver;
      troubles.set(model, { failures: failures + 1, pauses: isDown ? times + 1 : times });
      // A model that may be asked at once is not paused, and a pause under way stays as it is.
      const isPaused = (pauses.get(model)?.untilMs ?? 0) > performance.now();
      if (isDown && error.retryAfterMs === undefined && !isPaused) {
        open(model, Math.min(limits.breakerMaxMs, limits.breakerMs * 2 ** times), error, false);
      }
    },
    succeeded(model: string, probed: Pause | undefined): void {
      troubles.delete(model);
      const pause = pauses.get(model);
      if (pause === undefined || pause.id !== probed?.id) return;
      lift(model);
      board?.tell(model, toTold(pause), 0);
    },
  };
}

function toTold({ id, isAsked, error }: Pick<Pause, "id" | "isAsked" | "error">): ToldPause {
  const { kind, message, status } = error;
  return { kind, message, ...(status !== undefined && { status }), id, isAsked };
}
