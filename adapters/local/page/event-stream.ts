import { applyRow, type Store } from "./state.ts";
import type { GatewayNotice, Hello, Progress, Row } from "./wire.ts";

/** A longer silence ends the stream: the server sends something at least every 15 s. */
const SILENCE_MS = 40_000;
const RETRY_MS = [300, 1000, 2000, 4000, 8000];
/** How long a hidden tab keeps its stream: a browser allows only six connections to one server. */
const HIDDEN_MS = 5_000;

/**
 * Keeps the page up to date. After an interruption, continues from the last change that the page has, so that it misses
 * nothing. Retries automatically, and at once when the tab is shown or the network returns.
 */
export function followEventStream(store: Store, onOpen: () => void, onReady: () => void): void {
  let source: EventSource | undefined;
  let since = 0;
  let failures = 0;
  let retryTimer = 0;
  let silenceTimer = 0;

  function open(): void {
    close();
    source = new EventSource(`/local/events?since=${since}`);
    takeEvents(source, store, (seq) => (since = seq));
    source.addEventListener("hello", () => {
      failures = 0;
      onOpen();
    });
    source.addEventListener("ready", onReady);
    for (const type of ["hello", "row", "progress", "beat"]) source.addEventListener(type, listen);
    source.addEventListener("error", retry);
    listen();
  }

  function close(): void {
    clearTimeout(retryTimer);
    clearTimeout(silenceTimer);
    source?.close();
    source = undefined;
  }

  function listen(): void {
    clearTimeout(silenceTimer);
    silenceTimer = setTimeout(retry, SILENCE_MS);
  }

  function retry(): void {
    close();
    store.change((state) => void (state.isConnected = false));
    retryTimer = setTimeout(open, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]);
  }

  followVisibility(open, close, () => source !== undefined);
  open();
}

function takeEvents(source: EventSource, store: Store, taken: (seq: number) => void): void {
  source.addEventListener("hello", ({ data }) => {
    const hello = JSON.parse(data as string) as Hello;
    const known = store.state.hello?.epoch;
    // The server has new tables, so the page's data is outdated.
    if (known !== undefined && known !== hello.epoch) return location.reload();
    store.change((state) => {
      state.hello = hello;
      state.isConnected = true;
      // If the gateway still has a problem, the server sends it again.
      state.gateway = null;
    });
  });
  source.addEventListener("row", ({ data, lastEventId }) => {
    store.change((state) => applyRow(state, JSON.parse(data as string) as Row));
    taken(Number(lastEventId));
  });
  source.addEventListener("ready", () => store.change((state) => void (state.isReady = true)));
  source.addEventListener("gateway", ({ data }) => {
    store.change((state) => void (state.gateway = JSON.parse(data as string) as GatewayNotice | null));
  });
  source.addEventListener("waiting", ({ data }) => {
    store.change((state) => void (state.waiting = new Set(JSON.parse(data as string) as number[])));
  });
  source.addEventListener("progress", ({ data }) => {
    store.change((state) => void (state.progress = JSON.parse(data as string) as Progress[]));
  });
}

function followVisibility(open: () => void, close: () => void, isOpen: () => boolean): void {
  let hiddenTimer = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) hiddenTimer = setTimeout(close, HIDDEN_MS);
    else if (!isOpen()) open();
  });
  addEventListener("online", open);
  addEventListener("pagehide", close);
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) open();
  });
}
