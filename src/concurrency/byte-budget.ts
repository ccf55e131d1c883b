/** Bounds the bytes that are held at once in one process, for all who hold some of one kind together. */
export interface ByteBudget {
  /** A share of one holder, empty at first. */
  open(): ByteShare;
  /** Resolves when a share is released next. */
  released(): Promise<void>;
}

export interface ByteShare {
  /** Asks to hold `sizeBytes` in all. False where there is no room for that: the share then holds what it held. */
  hold(sizeBytes: number): boolean;
  /** Gives everything back, once, however often it is called. */
  release(): void;
}

/** A share never holds more than it leaves free, so that holders that never end cannot use everything up. */
export function createByteBudget(maxBytes: number): ByteBudget {
  let heldBytes = 0;
  let next = Promise.withResolvers<void>();
  return {
    released: () => next.promise,
    open() {
      let ownBytes = 0;
      let isOpen = true;
      return {
        hold(sizeBytes) {
          const othersBytes = heldBytes - ownBytes;
          // What is no number has no room either: added up, it would make room for everything.
          const hasRoom = sizeBytes <= maxBytes - othersBytes - sizeBytes;
          if (!isOpen || !hasRoom) return false;
          heldBytes = othersBytes + sizeBytes;
          ownBytes = sizeBytes;
          return true;
        },
        release() {
          if (!isOpen) return;
          isOpen = false;
          heldBytes -= ownBytes;
          next.resolve();
          next = Promise.withResolvers();
        },
      };
    },
  };
}
