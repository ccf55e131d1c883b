/** Proves that this process still holds some work. It becomes invalid when another process takes the work over. */
export interface Fence {
  /** A key of the shared store. It is renamed when the work outlives the ownership of its partition. */
  readonly key: string;
  /** The value of that key until another process takes over. Never changes. */
  readonly value: string;
  /** Rejects with a `FencedError` if another process took over. */
  check(): Promise<void>;
  /** True if this fence alone keeps all other processes from this name. Absent: it covers no name. */
  covers?(name: string): boolean;
}

/** Another process took the work over: this one must write nothing more of it. */
export class FencedError extends Error {
  override readonly name = "FencedError";
}

/**
 * The right to write for one piece of work. The queue hands it to the worker together with the work. Stores, sinks and
 * calls of a platform are made under a right, and write nothing once one of its fences is invalid.
 */
export interface Right {
  readonly fences: readonly Fence[];
  /** An earlier holder started this work and may have done some of it already. */
  readonly isResumed: boolean;
}

/**
 * Writes without a fence. Legitimate for work that no other process can take over, and for what a process must do even
 * after it lost its work. Each use says which of the two it is.
 */
export const NO_RIGHT: Right = { fences: [], isResumed: false };

/** The context of one piece of work. Its signal aborts when the work must end; the right decides what it may write. */
export interface Work {
  readonly signal: AbortSignal;
  readonly right: Right;
}

/** True if another process can take this work over. It then continues from the point at which this one stopped. */
export function canBeTakenOver({ fences }: Right): boolean {
  return fences.length > 0;
}

/** Identifies a right, whatever its keys are called at the moment. Knowledge gained under another right may be outdated. */
export function identify({ fences }: Right): string {
  return fences.map(({ value }) => value).join();
}

/** The same right, for work that can be partly done already, although no process held it. */
export function asResumed(right: Right): Right {
  return { ...right, isResumed: true };
}

export function withFence(right: Right, fence: Fence): Right {
  return { ...right, fences: [...right.fences, fence] };
}

/** Rejects with a `FencedError` if one of the fences is invalid. */
export async function checkRight({ fences }: Right): Promise<void> {
  for (const fence of fences) await fence.check();
}

/** The same API for writes that need a right. One write can be several calls, and its process can pause between them. */
export function withRight<P extends unknown[], R, T extends { call(...parameters: P): Promise<R> }>(
  api: T & { call(...parameters: P): Promise<R> },
  right: Right,
): T {
  return {
    ...api,
    async call(...parameters: P) {
      await checkRight(right);
      return api.call(...parameters);
    },
  };
}
