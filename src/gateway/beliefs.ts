/** Facts expire, because they can be wrong: some models refuse one image as if they refused all images. */
const BELIEVED_MS = 10 * 60_000;

/** Facts learned from a gateway's refusals. Each fact expires. */
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
