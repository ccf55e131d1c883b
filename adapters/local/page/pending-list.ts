import type { Pending, Store } from "./state.ts";

const PREFIX = "palaver.pending.";

/**
 * Messages that the server has not got yet, kept in the browser's storage too. Each has an entry of its own, so that
 * two tabs never write over each other's.
 */
export interface PendingList {
  add: (message: Pending) => void;
  remove: (nonce: string) => void;
  mark: (nonce: string, status: Pending["status"], problem?: string) => void;
}

export function createPendingList({ state, change }: Store): PendingList {
  state.pending = readStored();
  // Sent or discarded in another tab, which has the same list since it was opened.
  addEventListener("storage", ({ key, newValue }) => {
    if (newValue === null && key?.startsWith(PREFIX) === true) drop(key.slice(PREFIX.length));
  });

  function drop(nonce: string): void {
    change(() => void (state.pending = state.pending.filter((each) => each.nonce !== nonce)));
  }

  function put(message: Pending): void {
    try {
      localStorage.setItem(PREFIX + message.nonce, JSON.stringify(message));
    } catch {
      // The browser's room is full: the message is still sent, unless the page is closed before that.
    }
  }

  return {
    add(message) {
      put(message);
      change(() => void (state.pending = [...state.pending, message]));
    },
    remove(nonce) {
      localStorage.removeItem(PREFIX + nonce);
      drop(nonce);
    },
    mark(nonce, status, problem = "") {
      const found = state.pending.find((each) => each.nonce === nonce);
      // The server has it: only this page still shows it, until its row is there.
      if (status === "sent") localStorage.removeItem(PREFIX + nonce);
      if (found === undefined) return;
      const marked = { ...found, status, problem };
      if (status !== "sent") put(marked);
      change(() => void (state.pending = state.pending.map((each) => (each.nonce === nonce ? marked : each))));
    },
  };
}

/** What the last visit did not get rid of, oldest first. */
function readStored(): Pending[] {
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
  return keys
    .flatMap((key) => {
      try {
        return [JSON.parse(localStorage.getItem(key) ?? "") as Pending];
      } catch {
        return [];
      }
    })
    .sort((a, b) => a.createdAt - b.createdAt);
}
