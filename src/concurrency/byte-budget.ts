/** Limits the total bytes that all holders of one kind have in memory in this process. */
export interface ByteBudget {
  open(): ByteShare;
  /** Resolves when the next share is released. */
  released(): Promise<void>;
}

export interface ByteShare {
  /** Changes the share to `sizeBytes` in total. Returns false, without a change, if the budget does not allow that. */
  hold(sizeBytes: number): boolean;
  /** Releases all bytes of the share. A second call changes nothing. */
  release(): void;
}

/** A share gets at most half of the free bytes, so holders that never release their shares cannot use up the budget. */
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
          // Written so that NaN has no room: adding NaN to the total would disable the limit.
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
