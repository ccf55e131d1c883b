/** Proves that this process still owns some work. Becomes invalid when another process takes the work over. */
export interface Fence {
  /** A key of the shared store. The key is renamed if the work outlives this process's ownership of its partition. */
  readonly key: string;
  /** The key's value until another process takes over. Never changes. */
  readonly value: string;
  /** Rejects with a `FencedError` if another process took over. */
  check(): Promise<void>;
  /** True if this fence alone keeps all other processes from using this name. Absent: the fence covers no name. */
  covers?(name: string): boolean;
}

/** Another process took the work over, so this process must not write for that work again. */
export class FencedError extends Error {
  override readonly name = "FencedError";
}

/**
 * Permits writes for one piece of work. The queue hands the right to the worker together with the work. Stores, sinks
 * and platform calls check the right, and write nothing once one of its fences is invalid.
 */
export interface Right {
  readonly fences: readonly Fence[];
  /** True if an earlier process started this work and perhaps did part of it. */
  readonly isResumed: boolean;
}

/**
 * Permits writes without a fence. Use it for work that no other process can take over, or for a write that a process
 * must make even after it lost the work. Each use says which of the two it is.
 */
export const NO_RIGHT: Right = { fences: [], isResumed: false };

/** Belongs to one piece of work. The signal aborts when the work must end; the right permits its writes. */
export interface Work {
  readonly signal: AbortSignal;
  readonly right: Right;
}

/** True if another process can take this work over and continue where this process stopped. */
export function canBeTakenOver({ fences }: Right): boolean {
  return fences.length > 0;
}

/** Returns a text that survives a renaming of the right's keys. Facts read under another right can be outdated. */
export function identify({ fences }: Right): string {
  return fences.map(({ value }) => value).join();
}

/** Marks a right as resumed, for work that may be half done although no other process had the right. */
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

/** Makes an API check the right before each call, because one write can be several calls with pauses between them. */
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
