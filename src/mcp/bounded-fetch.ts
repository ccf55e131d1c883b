import { Agent, fetch } from "undici";

/** Maximum size of a response. A stream that exceeds it is reopened. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** Longer than any permitted call, so it affects only requests that have no timeout of their own. */
const HEADERS_MS = 660_000;
/** Without a body timeout, because an event stream is silent while the server has nothing to report. */
const agent = new Agent({ headersTimeout: HEADERS_MS, bodyTimeout: 0 });

/** `fetch` with a size limit. If a response is larger, reading its body fails. */
export async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  // The DOM library's types for these options differ from undici's.
  const options: object = { ...init, dispatcher: agent };
  const { body, status, statusText, headers, url: from } = await fetch(url, options);
  const bounded = body === null ? null : bound(body.getReader());
  return Object.defineProperty(new Response(bounded, { status, statusText, headers: [...headers] }), "url", {
    value: from,
  });
}

function bound(reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> {
  let sizeBytes = 0;
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await reader.read();
      if (done) return controller.close();
      sizeBytes += value.byteLength;
      if (sizeBytes <= MAX_BODY_BYTES) return controller.enqueue(value);
      await reader.cancel();
      throw new Error("The server's response is too large.");
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
