import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";

export interface BodyListener {
  onData(bytes: Buffer): void;
  onEnd(): void;
  /** Called if the body is interrupted or the call's signal aborts. */
  onError(error: unknown): void;
}

export interface ResponseBody {
  /** Calls the listener immediately with bytes that have already arrived. Only the first listener counts. */
  listen(listener: BodyListener): void;
  /** Closes the connection unless the body has ended. Calls no listener afterwards. */
  destroy(): void;
  /** Reads the rest to keep the connection, but closes it if that takes long. Calls no listener afterwards. */
  drain(): void;
}

export interface GatewayResponse {
  status: number;
  headers: IncomingHttpHeaders;
  body: ResponseBody;
}

/** The longest wait for a body's end. Waiting longer rarely helps: servers end the body right after the last event. */
const DRAIN_MS = 250;
const MAX_DRAIN_BYTES = 65_536;

const DEAF: BodyListener = { onData() {}, onEnd() {}, onError() {} };

/**
 * Sends a request and resolves when the response's head arrives. Handles undici's events directly, because a stream in
 * between would add a third to the processor time of each chunk. Rejects with the signal's reason or undici's error.
 */
export function dispatchRequest(
  agent: Dispatcher,
  options: Dispatcher.DispatchOptions,
  signal: AbortSignal,
): Promise<GatewayResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<GatewayResponse>();
  let controller: Dispatcher.DispatchController | undefined;
  let early: Buffer[] = [];
  let listener: BodyListener | undefined;
  let tellEnd: (() => void) | undefined;

  function leave(): void {
    // If there is no connection yet, `onRequestStart` aborts the request later.
    controller?.abort(new Error("The response was abandoned."));
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
      // The listener can stop listening while it handles a chunk.
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
