import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";

export interface BodyListener {
  onData(bytes: Buffer): void;
  onEnd(): void;
  /** The body broke off, or the call's signal aborted. */
  onError(error: unknown): void;
}

export interface ResponseBody {
  /** Tells what has come so far at once. Only the first listener is told, and none when the answer was left. */
  listen(listener: BodyListener): void;
  /** Closes the connection unless the body has ended, and tells nothing from then on. */
  destroy(): void;
  /** Reads the rest so that the connection can be reused, or closes it if that takes time. Reports nothing more. */
  drain(): void;
}

export interface GatewayResponse {
  status: number;
  headers: IncomingHttpHeaders;
  body: ResponseBody;
}

/** Servers end the body right behind the last event; more patience would be spent on an open connection. */
const DRAIN_MS = 250;
const MAX_DRAIN_BYTES = 65_536;

const DEAF: BodyListener = { onData() {}, onEnd() {}, onError() {} };

/**
 * Sends a request and resolves to its answer's head. Handles undici's events itself: a stream between would cost a
 * third of a chunk's processor time. Rejects with the signal's reason or undici's error.
 */
export function dispatchRequest(
  agent: Dispatcher,
  options: Dispatcher.DispatchOptions,
  signal: AbortSignal,
): Promise<GatewayResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<GatewayResponse>();
  let controller: Dispatcher.DispatchController | undefined;
  /** The first bytes come together with the head, before somebody listens. */
  let early: Buffer[] = [];
  let listener: BodyListener | undefined;
  let tellEnd: (() => void) | undefined;

  function leave(): void {
    // Without a connection there is nothing to abort yet: `onRequestStart` does it then.
    controller?.abort(new Error("The answer was left."));
  }

  function abort(): void {
    leave();
    reject(signal.reason);
  }

  function finish(tell: () => void): void {
    signal.removeEventListener("abort", abort);
    tellEnd ??= tell;
    if (listener !== undefined) tellEnd();
  }

  function destroy(): void {
    listener = DEAF;
    if (tellEnd === undefined) leave();
  }

  const body: ResponseBody = {
    listen(given) {
      listener ??= given;
      // It may leave while it is told.
      for (const bytes of early) if (listener === given) given.onData(bytes);
      early = [];
      if (listener === given) tellEnd?.();
    },
    destroy,
    drain() {
      listener = createDrain(destroy);
      tellEnd?.();
    },
  };

  if (signal.aborted) return Promise.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  agent.dispatch(options, {
    onRequestStart(own) {
      controller = own;
      if (signal.aborted) leave();
    },
    onResponseStart(_own, status, headers) {
      if (status >= 200) resolve({ status, headers, body });
    },
    onResponseData(_own, bytes) {
      if (listener === undefined) early.push(bytes);
      else listener.onData(bytes);
    },
    onResponseEnd: () => finish(() => listener?.onEnd()),
    onResponseError(_own, error) {
      reject(error);
      finish(() => listener?.onError(error));
    },
  });
  return promise;
}

function createDrain(destroy: () => void): BodyListener {
  const timer = setTimeout(destroy, DRAIN_MS);
  const stop = (): void => clearTimeout(timer);
  let sizeBytes = 0;
  return {
    onData(bytes) {
      sizeBytes += bytes.length;
      if (sizeBytes > MAX_DRAIN_BYTES) destroy();
    },
    onEnd: stop,
    onError: stop,
  };
}
