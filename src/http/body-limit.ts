import type { Context, MiddlewareHandler } from "hono";
import { readBounded } from "../media/read-bounded.ts";
import { bindingsOf } from "./bindings.ts";

const DEFAULT_TIMEOUT_MS = 10_000;

export interface BodyLimit {
  maxBytes: number;
  /** The longest time until the whole body has arrived. */
  timeoutMs?: number;
  /** The message to a person whose request is too large. */
  tooLong?: string;
}

/**
 * Reads the whole request body and passes it on. Mount it after the checks that need no body. No other code reads
 * bodies.
 *
 * Responds with 413 if a body is too large, 408 if it is too slow, and 503 if all bodies together exceed the budget. A
 * body counts against the budget until its response is sent.
 *
 * Hono's own limit copies the request, which fails because the server's request is not a standard one.
 */
export function limitBody({ maxBytes, timeoutMs = DEFAULT_TIMEOUT_MS, tooLong }: BodyLimit): MiddlewareHandler {
  return async (context, next) => {
    const { incoming, outgoing, bodies } = bindingsOf(context);
    const refuseLength = () => context.json({ error: tooLong ?? `The request is larger than ${maxBytes} bytes.` }, 413);
    if (Number(incoming.headers["content-length"] ?? 0) > maxBytes) return refuseLength();

    const share = bodies.open();
    outgoing.once("close", share.release);
    const { url, method, headers, body: source, signal } = context.req.raw;
    const late = AbortSignal.timeout(timeoutMs);
    try {
      const bounded = AbortSignal.any([signal, late]);
      const body = source === null ? new Uint8Array() : await readBounded(source, { maxBytes, share }, bounded);
      if (body === "too-large") return refuseLength();
      if (body === "no-room") return refuseForNow(context);
      // Pass a stream, because Hono would copy a whole body in one go: 60 ms for the largest one.
      const stream = new ReadableStream({
        start(controller) {
          controller.enqueue(body);
          controller.close();
        },
      });
      const init = { method, headers, body: stream, signal, duplex: "half" as const };
      context.req.raw = new Request(url, init);
    } catch {
      if (late.aborted && !signal.aborted) return context.json({ error: "The request took too long to arrive." }, 408);
      // The status does not matter: the sender has disconnected and will not see this response.
      return context.body(null, 400);
    }
    return next();
  };
}

function refuseForNow(context: Context): Response {
  context.header("Retry-After", "2");
  return context.json({ error: "The server is receiving too much right now. Try again in a moment." }, 503);
}
