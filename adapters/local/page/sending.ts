import { type PictureForm, toImagineText, toOptions } from "./picture-form.ts";
import { createNonce, postJson, RefusedError } from "./requests.ts";
import { isChat, type Pending, type Place, placeKey, type State, type Store } from "./state.ts";
import type { FileRow, SendBody } from "./wire.ts";

const RETRY_MS = 2000;
/** Erases everything about a person. */
const FORGET_ME = /^\/forget\s+(me|everything|everything about me|all)\s+for good$/i;

/**
 * Gets messages to the server. Each has a nonce and is kept in the browser until the server has it, over a lost
 * connection and a reload; sent again with the same nonce it is still one message.
 */
export interface Sending {
  /** With a `picture`, the text says what to draw. */
  send: (place: Place, text: string, files: FileRow[], picture?: PictureForm) => void;
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
      if (FORGET_ME.test(message.text)) discardUnsent(message.authorId);
      onSent(message, id);
      return true;
    } catch (error) {
      const isRefused = error instanceof RefusedError;
      list.mark(nonce, isRefused ? "failed" : "waiting", isRefused ? error.message : "");
      if (!isRefused) setTimeout(() => void flush(placeKey(message)), RETRY_MS);
      return isRefused;
    }
  }

  /** Refused messages are kept in this browser alone. */
  function discardUnsent(authorId: string): void {
    for (const each of store.state.pending)
      if (each.authorId === authorId && each.status === "failed") discard(each.nonce);
  }

  function discard(nonce: string): void {
    list.remove(nonce);
    // The server may have stored it without accepting it; if it cannot be reached, it has not.
    postJson("/local/messages/withdraw", { nonce }).catch(() => undefined);
  }

  return {
    send(place, text, files, picture) {
      const said = picture === undefined ? text : toImagineText(text);
      list.add({ ...toPending(place, store.state), text: said, files, picture });
      void flush(placeKey(place));
    },
    again(nonce) {
      list.mark(nonce, "waiting");
      const message = store.state.pending.find((each) => each.nonce === nonce);
      if (message !== undefined) void flush(placeKey(message));
    },
    discard,
    resume() {
      for (const key of new Set(store.state.pending.map(placeKey))) void flush(key);
    },
  };
}

function toPending(place: Place, state: State): Omit<Pending, "text" | "files" | "picture"> {
  const isNewChat = isChat(state, place.channelId) && !state.channels.has(place.channelId);
  const [nonce, createdAt] = [createNonce(), Date.now()];
  return { ...place, nonce, authorId: state.speakerId, isNewChat, createdAt, status: "sending", problem: "" };
}

function nextAt(state: State, key: string): Pending | undefined {
  return state.pending.find(
    (each) => placeKey(each) === key && (each.status === "sending" || each.status === "waiting"),
  );
}

function toBody({ nonce, authorId, channelId, threadId, text, files, picture, isNewChat }: Pending): SendBody {
  const fileIds = files.map((file) => file.id);
  const options = picture === undefined ? {} : { options: toOptions(picture) };
  return { nonce, authorId, channelId, threadId, text, fileIds, ...options, isNewChat };
}

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

function createPendingList({ state, change }: Store): PendingList {
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
      // The browser's storage is full: the message is still sent, unless the page is closed before that.
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

/** The messages that the last visit left unsent, oldest first. */
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
