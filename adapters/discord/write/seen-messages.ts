import type { APIMessage } from "discord.js";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";

const MAX_SEEN = 500;
/** The gateway tells of a message about as fast as the call that made it is answered. */
const WAIT_MS = 2_000;

/**
 * The bot's answers to interactions, as the gateway told of them. What only one person sees
 * cannot be looked for by a call, so a process that listens finds it here when the answer to a post was lost.
 */
export interface SeenInteractionMessages {
  see(message: APIMessage): void;
  /** One that was seen or, where it may still be on its way, is seen within two seconds. */
  find(sought: MessageSearch, signal: AbortSignal): Promise<APIMessage | undefined>;
}

export interface MessageSearch {
  interactionId: string;
  isMeant(message: APIMessage): boolean;
  mayBeOnItsWay: boolean;
}

export function createSeenInteractionMessages(): SeenInteractionMessages {
  const seen = new BoundedMap<string, APIMessage>(MAX_SEEN);
  const waiting = new Set<() => void>();

  return {
    see(message) {
      if (message.interaction_metadata === undefined) return;
      seen.set(message.id, message);
      for (const wake of waiting) wake();
    },
    async find({ interactionId, isMeant, mayBeOnItsWay }, signal) {
      const look = () =>
        [...seen.values()].find((one) => one.interaction_metadata?.id === interactionId && isMeant(one));
      const late = AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS)]);
      if (mayBeOnItsWay) while (look() === undefined && !late.aborted) await wakeOf(late);
      return look();
    },
  };

  function wakeOf(late: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        waiting.delete(wake);
        late.removeEventListener("abort", wake);
        resolve();
      };
      waiting.add(wake);
      late.addEventListener("abort", wake);
    });
  }
}
