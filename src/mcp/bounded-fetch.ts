import { Agent, fetch } from "undici";

/** One answer of a server at most; a stream that lives longer is opened again. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** Longer than any call may take. It bounds the other requests, which have no bound of their own. */
const HEADERS_MS = 660_000;
/** A stream of events may be silent for as long as the server has nothing to tell. */
const agent = new Agent({ headersTimeout: HEADERS_MS, bodyTimeout: 0 });

/** `fetch` with a bound on what one answer may bring: it breaks off beyond that. */
export async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  // The same options, whose types the libraries of a page declare otherwise.
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
      throw new Error("The answer of the server is too large.");
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
