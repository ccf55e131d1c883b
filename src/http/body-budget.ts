/** What the bodies that are read in one process may hold together. */
export interface BodyBudget {
  /** The share of one body, empty at first. */
  open(): BodyShare;
}

export interface BodyShare {
  /** Asks to hold `sizeBytes` in all. False where there is no room for that: the body has to be given up. */
  hold(sizeBytes: number): boolean;
  /** Gives everything back, once, however often it is called. */
  release(): void;
}

/**
 * A body never holds more than it leaves free. So bodies that never end cannot use everything up: each further one
 * halves what a large body may still hold, and a short one finds room all the same.
 */
export function createBodyBudget(maxBytes: number): BodyBudget {
  let heldBytes = 0;
  return {
    open() {
      let ownBytes = 0;
      let isOpen = true;
      return {
        hold(sizeBytes) {
          const othersBytes = heldBytes - ownBytes;
          if (!isOpen || sizeBytes > maxBytes - othersBytes - sizeBytes) return false;
          heldBytes = othersBytes + sizeBytes;
          ownBytes = sizeBytes;
          return true;
        },
        release() {
          if (isOpen) heldBytes -= ownBytes;
          isOpen = false;
        },
      };
    },
  };
}
