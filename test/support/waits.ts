import type { SharedWaits } from "../../src/port/pace.ts";

/** What so many processes tell each other of waits, at once. */
export function connectWaits(count: number): SharedWaits[] {
  const listeners: Parameters<SharedWaits["listen"]>[0][] = [];
  return Array.from({ length: count }, (_, own) => ({
    tell: (what, forMs) => listeners.forEach((onTold, index) => index !== own && onTold(what, forMs)),
    listen: (onTold) => void (listeners[own] = onTold),
  }));
}
