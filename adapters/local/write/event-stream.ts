import type { GatewayNotice, Hello, Progress, Row } from "../page/wire.ts";
import type { ChatList } from "../store/chats.ts";
import type { Messages } from "../store/messages.ts";
import type { Tables } from "../store/tables.ts";

const BATCH_ROWS = 200;
/** Far below the timeout of the page and of any proxy. */
const HEARTBEAT_MS = 15_000;

/**
 * Sends changes to every open page without a queue per page. Each stream remembers the last change that it sent. When
 * the browser accepts more data, the stream reads the newest state of the rows that changed since. So a stalled browser
 * costs no memory, and an answer that grew ten times meanwhile is sent once.
 */
export interface EventStream {
  changed: () => void;
  /** Shows the bot's progress in a chat; "" removes it. Kept in memory only. */
  setProgress(progress: Progress): void;
  /** Marks a message as waiting for its turn, or removes the mark. Kept in memory only. */
  setWaiting(messageId: number, isWaiting: boolean): void;
  /** Shows the gateway's problem; undefined removes it. Kept in memory only. */
  setGateway(notice: GatewayNotice | undefined): void;
  findProgress(turnId: string): Progress | undefined;
  /** Opens server-sent events for everything after the change `since`. */
  open(since: number): ReadableStream<Uint8Array>;
  /** Ends every stream. Later streams end at once. */
  close(): void;
}

interface Reader {
  wake(): void;
}

interface LiveState {
  progress: Map<string, Progress>;
  waiting: Set<number>;
  gateway: GatewayNotice | undefined;
  version: number;
}

export function createEventStream(tables: Tables, chats: ChatList, messages: Messages, hello: Hello): EventStream {
  const readers = new Set<Reader>();
  const live: LiveState = { progress: new Map(), waiting: new Set(), gateway: undefined, version: 0 };
  let isClosed = false;

  function wakeAll(): void {
    for (const reader of readers) reader.wake();
  }

  return {
    changed: wakeAll,
    setProgress(update) {
      const shown = live.progress.get(update.chatId);
      if (update.text === (shown?.text ?? "") && update.turnId === (shown?.turnId ?? null)) return;
      if (update.text === "") live.progress.delete(update.chatId);
      else live.progress.set(update.chatId, update);
      live.version++;
      wakeAll();
    },
    setWaiting(messageId, isWaiting) {
      if (isWaiting) live.waiting.add(messageId);
      else live.waiting.delete(messageId);
      live.version++;
      wakeAll();
    },
    setGateway(notice) {
      live.gateway = notice;
      live.version++;
      wakeAll();
    },
    findProgress: (turnId) => live.progress.values().find((each) => each.turnId === turnId),
    open(since) {
      const knownSince = since === 0 ? tables.lastSeq() : 0;
      const rowsAfter = (seq: number): Row[] => readRows(chats, messages, seq, knownSince);
      return openStream(createCursor(since, hello, rowsAfter, live), readers, () => isClosed);
    },
    close() {
      isClosed = true;
      wakeAll();
    },
  };
}

function readRows(chats: ChatList, messages: Messages, seq: number, knownSince: number): Row[] {
  const rows: Row[] = [...chats.since(seq, BATCH_ROWS), ...messages.since(seq, BATCH_ROWS, knownSince)];
  return rows.sort((a, b) => a.seq - b.seq).slice(0, BATCH_ROWS);
}

/** Creates the function that returns a page's next events, oldest first, or undefined without new events. */
function createCursor(
  since: number,
  hello: Hello,
  rowsAfter: (seq: number) => Row[],
  live: LiveState,
): () => string | undefined {
  let sent: number | undefined;
  let isCaughtUp = false;
  let sentVersion = -1;
  let sentGateway: GatewayNotice | undefined;

  return () => {
    if (sent === undefined) {
      sent = since;
      return `retry: 1000\n${toEvent("hello", hello)}`;
    }
    const rows = rowsAfter(sent);
    const last = rows.at(-1);
    if (last !== undefined) {
      sent = last.seq;
      return rows.map((row) => `id: ${row.seq}\n${toEvent("row", row)}`).join("");
    }
    if (!isCaughtUp) {
      isCaughtUp = true;
      return toEvent("ready", {});
    }
    if (sentVersion === live.version) return undefined;
    sentVersion = live.version;
    const progress = toEvent("progress", [...live.progress.values()]) + toEvent("waiting", [...live.waiting]);
    if (sentGateway === live.gateway) return progress;
    sentGateway = live.gateway;
    return progress + toEvent("gateway", live.gateway ?? null);
  };
}

function openStream(next: () => string | undefined, readers: Set<Reader>, isClosed: () => boolean): ReadableStream {
  const encoder = new TextEncoder();
  let changed = Promise.withResolvers<void>();
  const reader: Reader = { wake: () => changed.resolve() };
  readers.add(reader);

  async function nextChunk(): Promise<string | undefined> {
    for (;;) {
      if (isClosed() || !readers.has(reader)) return undefined;
      // Set before the check, so that no change between the check and the wait is missed.
      changed = Promise.withResolvers();
      const chunk = next();
      if (chunk !== undefined) return chunk;
      let isQuiet = false;
      const beat = setTimeout(() => {
        isQuiet = true;
        changed.resolve();
      }, HEARTBEAT_MS);
      await changed.promise;
      clearTimeout(beat);
      if (isQuiet) return toEvent("beat", {});
    }
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const chunk = await nextChunk();
        if (chunk !== undefined) return controller.enqueue(encoder.encode(chunk));
        const wasOpen = readers.delete(reader);
        if (wasOpen) controller.close();
      },
      cancel() {
        readers.delete(reader);
        reader.wake();
      },
    },
    { highWaterMark: 0 },
  );
}

function toEvent(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
