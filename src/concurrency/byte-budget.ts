/** Limits the bytes that all holders of one kind in this process hold together. */
export interface ByteBudget {
  /** Opens an empty share for a new holder. */
  open(): ByteShare;
  /** Resolves when a share is released. */
  released(): Promise<void>;
}

export interface ByteShare {
  /** Requests to hold `sizeBytes` in total. Returns false and changes nothing if there is no room. */
  hold(sizeBytes: number): boolean;
  /** Releases all bytes of the share. Calling it again changes nothing. */
  release(): void;
}

/** A share can hold at most half of the free bytes, so holders that never release them cannot use up the budget. */
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
          // Also false for NaN. Adding NaN to the total would disable the limit.
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
