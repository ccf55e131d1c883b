/** One answer of a server at most; a stream that lives longer is opened again. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** `fetch` with a bound on what one answer may bring: it breaks off beyond that. */
export async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const answer = await fetch(url, init);
  if (answer.body === null) return answer;
  let sizeBytes = 0;
  const bounded = answer.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        sizeBytes += chunk.byteLength;
        if (sizeBytes > MAX_BODY_BYTES) controller.error(new Error("The answer of the server is too large."));
        else controller.enqueue(chunk);
      },
    }),
  );
  const { status, statusText, headers } = answer;
  return Object.defineProperty(new Response(bounded, { status, statusText, headers }), "url", { value: answer.url });
}
