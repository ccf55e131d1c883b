/**
 * Facts are forgotten after this time, because they can be wrong. Later, another model can have the same name. Some
 * models refuse a single picture in words that others use to refuse all pictures.
 */
const BELIEVED_MS = 10 * 60_000;

/** Facts learned from refusals. Each expires after a while. */
export interface Beliefs<T> {
  all(): T[];
  add(fact: T): void;
}

export function createBeliefs<T>(): Beliefs<T> {
  let kept: Array<{ fact: T; untilMs: number }> = [];
  const current = () => kept.filter(({ untilMs }) => untilMs > performance.now());
  return {
    all: () => current().map(({ fact }) => fact),
    add(fact) {
      kept = [...current(), { fact, untilMs: performance.now() + BELIEVED_MS }];
    },
  };
}
