import { AsyncLocalStorage } from "node:async_hooks";

/**
 * The right to write, which others take over when its holder is taken for dead. It holds for everything that is done
 * inside `withFence`, however deep: what writes asks for it there, and nothing in between has to know of it.
 */
export interface Fence {
  /** A key of the shared store, and what it has to say for as long as nobody else has taken over. */
  readonly key: string;
  readonly value: string;
  /** Rejects with a `FencedError` when somebody else has taken over. */
  check(): Promise<void>;
  /** True when an earlier holder began the work and did not finish it. */
  readonly isTakenUp?: boolean;
}

/** Another holder has taken the work over: nothing more of it may be written here. */
export class FencedError extends Error {
  override readonly name = "FencedError";
}

const held = new AsyncLocalStorage<readonly Fence[]>();
const begunBefore = new AsyncLocalStorage<boolean>();

export function fencesHeld(): readonly Fence[] {
  return held.getStore() ?? [];
}

/** True while another process may take this work over: it then goes on where this one was. */
export function mayBeTakenOver(): boolean {
  return fencesHeld().length > 0;
}

/** Names the fences that are held. What was learnt under other fences may be out of date. */
export function rightHeld(): string {
  return fencesHeld()
    .map(({ key, value }) => `${key}=${value}`)
    .join();
}

/** True when an earlier holder may have done some of this work already, and died or was cut before it could say so. */
export function isTakenUp(): boolean {
  return begunBefore.getStore() === true || fencesHeld().some((fence) => fence.isTakenUp === true);
}

/** Runs a task of which some may have been done already, although nobody held it. */
export function asTakenUp<T>(task: () => T): T {
  return begunBefore.run(true, task);
}

/** Runs a task under one more fence. */
export function withFence<T>(fence: Fence, task: () => T): T {
  return held.run([...fencesHeld(), fence], task);
}

/** Runs a task under no fence: for what was decided under one that may have fallen since. */
export function withoutFence<T>(task: () => T): T {
  return held.run([], task);
}

/** Rejects with a `FencedError` when any of the fences that are held has fallen. */
export async function checkFences(): Promise<void> {
  for (const fence of fencesHeld()) await fence.check();
}

/** Binds a callback to the fences held now, whoever calls it later. */
export function keepFences<A extends unknown[], R>(task: (...values: A) => R): (...values: A) => R {
  return AsyncLocalStorage.bind(task);
}
