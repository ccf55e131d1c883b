import type { Context, MiddlewareHandler } from "hono";
import { readBounded } from "../media/read-bounded.ts";
import { bindingsOf } from "./bindings.ts";

const DEFAULT_TIMEOUT_MS = 10_000;

export interface BodyLimit {
  maxBytes: number;
  /** Longest that it may take to arrive. */
  timeoutMs?: number;
  /** The message for the person whose body is longer. */
  tooLong?: string;
}

/**
 * Reads the body of a request and hands it on, whole. To be put on a route after everything that can be decided
 * without a body, since nothing else reads one: what is too long, too slow, or too much beside what others send at the
 * same time is answered with 413, 408 or 503, and the rest of it is not kept. What a body holds counts until its answer
 * is out. Hono's own limit copies the server's request, and fails because it is none of the platform's.
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
      // As a stream: bytes would be copied at once, which takes 60 ms for the largest.
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
      // The sender has left: nobody gets this answer.
      return context.body(null, 400);
    }
    return next();
  };
}

function refuseForNow(context: Context): Response {
  context.header("Retry-After", "2");
  return context.json({ error: "The server takes in too much at the moment. Try again in a moment." }, 503);
}
