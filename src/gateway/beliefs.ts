/** Another model may stand behind the same name later, and some refuse one picture with the words that others use to refuse all. */
const BELIEVED_MS = 10 * 60_000;

/** Facts that refusals have shown, each believed for a while. */
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
