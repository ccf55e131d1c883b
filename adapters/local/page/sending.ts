import { type PictureForm, toImagineText, toOptions } from "./picture-form.ts";
import { createNonce, postJson, RefusedError } from "./requests.ts";
import type { Pending, State, Store } from "./state.ts";
import type { FileRow, SendBody } from "./wire.ts";

const RETRY_MS = 2000;
const FORGET_ME = /^\/forget\s+(me|everything|everything about me|all)\s+for good$/i;

/**
 * Sends messages. Each stays in the browser until the server has it, even after a reload. Its nonce keeps a repeated
 * request from creating a second message.
 */
export interface Sending {
  /** With a `picture`, the text describes the image. */
  send: (chatId: string, text: string, files: FileRow[], picture?: PictureForm) => void;
  again: (nonce: string) => void;
  discard: (nonce: string) => void;
  resume: () => void;
}

export function createSending(store: Store): Sending {
  const list = createPendingList(store);
  const busy = new Set<string>();

  /** Sends one message at a time per chat, to keep their order. */
  async function flush(chatId: string): Promise<void> {
    if (busy.has(chatId)) return;
    busy.add(chatId);
    try {
      for (let next = nextAt(store.state, chatId); next !== undefined; next = nextAt(store.state, chatId)) {
        if (!(await deliver(next))) return;
      }
    } finally {
      busy.delete(chatId);
    }
  }

  /** Resolves to false if there is no connection. */
  async function deliver(message: Pending): Promise<boolean> {
    const { nonce, chatId } = message;
    list.mark(nonce, "sending");
    try {
      const { id } = (await postJson("/local/messages", toBody(message))) as { id: number };
      list.mark(nonce, "sent");
      // The event stream can deliver the message's row before this response arrives.
      if (store.state.messages.has(id)) list.remove(nonce);
      if (FORGET_ME.test(message.text)) discardUnsent();
      return true;
    } catch (error) {
      const isRefused = error instanceof RefusedError;
      list.mark(nonce, isRefused ? "failed" : "waiting", isRefused ? error.message : "");
      if (!isRefused) setTimeout(() => void flush(chatId), RETRY_MS);
      return isRefused;
    }
  }

  /** Discards refused messages, which exist only in this browser. */
  function discardUnsent(): void {
    for (const each of store.state.pending) if (each.status === "failed") discard(each.nonce);
  }

  function discard(nonce: string): void {
    list.remove(nonce);
    // Withdraws a message that the server may have stored without accepting it. An unreachable server has stored
    // nothing.
    postJson("/local/messages/withdraw", { nonce }).catch(() => undefined);
  }

  return {
    send(chatId, text, files, picture) {
      const said = picture === undefined ? text : toImagineText(text);
      list.add({ ...toPending(chatId, store.state), text: said, files, picture });
      void flush(chatId);
    },
    again(nonce) {
      list.mark(nonce, "waiting");
      const message = store.state.pending.find((each) => each.nonce === nonce);
      if (message !== undefined) void flush(message.chatId);
    },
    discard,
    resume() {
      for (const chatId of new Set(store.state.pending.map((each) => each.chatId))) void flush(chatId);
    },
  };
}

function toPending(chatId: string, { chats }: State): Omit<Pending, "text" | "files" | "picture"> {
  const base = { nonce: createNonce(), createdAt: Date.now(), isNewChat: !chats.has(chatId) };
  return { chatId, ...base, status: "sending", problem: "" };
}

function nextAt({ pending }: State, chatId: string): Pending | undefined {
  return pending.find((each) => each.chatId === chatId && (each.status === "sending" || each.status === "waiting"));
}

function toBody({ nonce, chatId, text, files, picture, isNewChat }: Pending): SendBody {
  const fileIds = files.map((file) => file.id);
  const options = picture === undefined ? {} : { options: toOptions(picture) };
  return { nonce, chatId, text, fileIds, ...options, isNewChat };
}

const PREFIX = "palaver.pending.";

/**
 * The messages that the server does not have yet: separate entries in the browser's storage, so that two tabs never
 * overwrite each other's messages.
 */
export interface PendingList {
  add: (message: Pending) => void;
  remove: (nonce: string) => void;
  mark: (nonce: string, status: Pending["status"], problem?: string) => void;
}

function createPendingList({ state, change }: Store): PendingList {
  state.pending = readStored();
  // Another tab sent or discarded the message.
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
      // The browser's storage is full. The message is still sent unless the page closes first.
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
      // The server has the message. The page shows its own copy until the row arrives.
      if (status === "sent") localStorage.removeItem(PREFIX + nonce);
      if (found === undefined) return;
      const marked = { ...found, status, problem };
      if (status !== "sent") put(marked);
      change(() => void (state.pending = state.pending.map((each) => (each.nonce === nonce ? marked : each))));
    },
  };
}

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
