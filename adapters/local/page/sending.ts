import { createNonce, postJson, RefusedError } from "./requests.ts";
import { isChat, type Pending, type Place, placeKey, type State, type Store } from "./state.ts";
import type { FileRow, SendBody } from "./wire.ts";

const STORED = "palaver.pending";
const RETRY_MS = 2000;

/**
 * Gets messages to the server. Each has a nonce and is kept in the browser until the server has it, over a lost
 * connection and a reload; sent again with the same nonce it is still one message.
 */
export interface Sending {
  send: (place: Place, text: string, files: FileRow[]) => void;
  again: (nonce: string) => void;
  discard: (nonce: string) => void;
  /** Sends what waits for the connection. */
  resume: () => void;
}

/** `onSent` is told the id that a message got. */
export function createSending(store: Store, onSent: (message: Pending, id: number) => void): Sending {
  const list = createPendingList(store);
  const busy = new Set<string>();

  /** One message at a time per place, so that they arrive in the order they were written. */
  async function flush(key: string): Promise<void> {
    if (busy.has(key)) return;
    busy.add(key);
    try {
      for (let next = nextAt(store.state, key); next !== undefined; next = nextAt(store.state, key)) {
        if (!(await deliver(next))) return;
      }
    } finally {
      busy.delete(key);
    }
  }

  /** False when there is no connection. */
  async function deliver(message: Pending): Promise<boolean> {
    const { nonce } = message;
    list.mark(nonce, "sending");
    try {
      const { id } = (await postJson("/local/messages", toBody(message))) as { id: number };
      list.mark(nonce, "sent");
      // Its row may have come before the answer did.
      if (store.state.messages.has(id)) list.remove(nonce);
      onSent(message, id);
      return true;
    } catch (error) {
      const isRefused = error instanceof RefusedError;
      list.mark(nonce, isRefused ? "failed" : "waiting", isRefused ? error.message : "");
      if (!isRefused) setTimeout(() => void flush(placeKey(message)), RETRY_MS);
      return isRefused;
    }
  }

  return {
    send(place, text, files) {
      list.add(toPending(place, text, files, store.state));
      void flush(placeKey(place));
    },
    again(nonce) {
      list.mark(nonce, "waiting");
      const message = store.state.pending.find((each) => each.nonce === nonce);
      if (message !== undefined) void flush(placeKey(message));
    },
    discard(nonce) {
      list.remove(nonce);
      // The server may have stored it without accepting it; if it cannot be reached, it has not.
      postJson("/local/messages/withdraw", { nonce }).catch(() => undefined);
    },
    resume() {
      for (const key of new Set(store.state.pending.map(placeKey))) void flush(key);
    },
  };
}

interface PendingList {
  add: (message: Pending) => void;
  remove: (nonce: string) => void;
  mark: (nonce: string, status: Pending["status"], problem?: string) => void;
}

/** The list in the state, kept in the browser's storage too. */
function createPendingList(store: Store): PendingList {
  store.state.pending = readStored();

  function change(work: (pending: Pending[]) => Pending[]): void {
    store.change((state) => {
      state.pending = work(state.pending);
      localStorage.setItem(STORED, JSON.stringify(state.pending));
    });
  }

  return {
    add: (message) => change((pending) => [...pending, message]),
    remove: (nonce) => change((pending) => pending.filter((each) => each.nonce !== nonce)),
    mark: (nonce, status, problem = "") =>
      change((pending) => pending.map((each) => (each.nonce === nonce ? { ...each, status, problem } : each))),
  };
}

function toPending(place: Place, text: string, files: FileRow[], state: State): Pending {
  const isNewChat = isChat(state, place.channelId) && !state.channels.has(place.channelId);
  const [nonce, createdAt] = [createNonce(), Date.now()];
  return {
    ...place,
    nonce,
    authorId: state.speakerId,
    text,
    files,
    isNewChat,
    createdAt,
    status: "sending",
    problem: "",
  };
}

function nextAt(state: State, key: string): Pending | undefined {
  return state.pending.find(
    (each) => placeKey(each) === key && (each.status === "sending" || each.status === "waiting"),
  );
}

function toBody({ nonce, authorId, channelId, threadId, text, files, isNewChat }: Pending): SendBody {
  return { nonce, authorId, channelId, threadId, text, isNewChat, fileIds: files.map((file) => file.id) };
}

/** What the last visit did not get rid of; what was sent is on the server. */
function readStored(): Pending[] {
  try {
    const stored = JSON.parse(localStorage.getItem(STORED) ?? "[]") as Pending[];
    return stored.filter((each) => each.status !== "sent");
  } catch {
    return [];
  }
}
