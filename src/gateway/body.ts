import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";

export interface BodyListener {
  onData(bytes: Buffer): void;
  onEnd(): void;
  /** The body broke off, or the call's signal aborted. */
  onError(error: unknown): void;
}

/** The body of an answer, told as it comes. */
export interface ResponseBody {
  /** Tells what has come so far at once. Only the first listener is told, and none when the answer was left. */
  listen(listener: BodyListener): void;
  pause(): void;
  resume(): void;
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

/** Why undici is made to close a connection; nobody is told. */
const LEFT = "The answer was left.";

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
  const tap = createTap();
  let controller: Dispatcher.DispatchController | undefined;

  function abort(): void {
    // Without a connection there is nothing to abort yet: `onRequestStart` does it then.
    controller?.abort(new Error(LEFT));
    reject(signal.reason);
  }
  if (signal.aborted) return Promise.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });

  agent.dispatch(options, {
    onRequestStart(own) {
      controller = own;
      if (signal.aborted) own.abort(new Error(LEFT));
    },
    onResponseStart(own, status, headers) {
      if (status >= 200) resolve({ status, headers, body: tap.open(own) });
    },
    onResponseData: tap.data,
    onResponseEnd() {
      signal.removeEventListener("abort", abort);
      tap.end();
    },
    onResponseError(_own, error) {
      signal.removeEventListener("abort", abort);
      reject(error);
      tap.fail(error);
    },
  });
  return promise;
}

interface Tap {
  open(controller: Dispatcher.DispatchController): ResponseBody;
  data(controller: Dispatcher.DispatchController, bytes: Buffer): void;
  end(): void;
  fail(error: unknown): void;
}

/** Keeps what comes before somebody listens: the first bytes come together with the head. */
function createTap(): Tap {
  let early: Buffer[] = [];
  let listener: BodyListener | undefined;
  let end: (() => void) | undefined;

  function finish(tell: () => void): void {
    end ??= tell;
    if (listener !== undefined) end();
  }

  function createBody(controller: Dispatcher.DispatchController): ResponseBody {
    function destroy(): void {
      listener = DEAF;
      if (end === undefined) controller.abort(new Error(LEFT));
    }

    return {
      listen(given) {
        listener ??= given;
        // It may leave while it is told.
        for (const bytes of early) if (listener === given) given.onData(bytes);
        early = [];
        if (listener === given) end?.();
      },
      pause: () => controller.pause(),
      resume: () => controller.resume(),
      destroy,
      drain() {
        listener = createDrain(destroy);
        controller.resume();
        end?.();
      },
    };
  }

  return {
    data(_controller, bytes) {
      if (listener === undefined) early.push(bytes);
      else listener.onData(bytes);
    },
    end: () => finish(() => listener?.onEnd()),
    fail: (error) => finish(() => listener?.onError(error)),
    open: createBody,
  };
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

/** Listens to an answer that was left. */
const DEAF: BodyListener = { onData() {}, onEnd() {}, onError() {} };
