import type { MiddlewareHandler } from "hono";
import { readBounded } from "../media/read-bounded.ts";

/**
 * Answers with 413 when a request's body is longer than `maxBytes`, by its length, or, where none is named, by reading
 * it. Hono's own copies the server's request for that, and fails because it is none of the platform's; what is read here
 * is handed on as one.
 */
export function createBodyLimit(maxBytes: number): MiddlewareHandler {
  return async (context, next) => {
    const refuse = () => context.json({ error: `The request is larger than ${maxBytes} bytes.` }, 413);
    const { raw } = context.req;
    const { headers, url, method, signal } = raw;
    const length = headers.has("transfer-encoding") ? null : headers.get("content-length");
    if (length !== null) {
      if (Number(length) > maxBytes) return refuse();
    } else if (raw.body !== null) {
      const body = await readBounded(raw.body, maxBytes, signal);
      if (body === undefined) return refuse();
      context.req.raw = new Request(url, { method, headers, body: body as Uint8Array<ArrayBuffer>, signal });
    }
    return next();
  };
}
