import { Agent, type Dispatcher } from "undici";
import { dispatchRequest, type GatewayResponse, type ResponseBody, toPlainBody } from "./body.ts";
import { GatewayError } from "./errors.ts";
import { toConnectionError, toStatusError } from "./failures.ts";
import type { GatewayLimits } from "./limits.ts";
import type { SafeText } from "./safe-text.ts";
import type { Watch } from "./watch.ts";

export interface GatewayCall {
  method: "GET" | "POST";
  path: string;
  /** Absent with GET. */
  json?: string;
  /** The answer may come as events. */
  streaming?: boolean;
  model?: string;
  /** Header that carries the key instead of `Authorization`. */
  keyHeader?: string;
  /** See `CallOptions`. */
  beforeSend?: (() => Promise<void>) | undefined;
}

/**
 * Sends a call and resolves to the body of a 2xx answer; the caller destroys it. Rejects with a GatewayError
 * for every other answer and when none comes, with the signal's reason when `watch` ends, and with what `beforeSend` rejects with.
 */
export type Send = (call: GatewayCall, watch: Watch) => Promise<ResponseBody>;

export interface Transport {
  send: Send;
  /** Ends every running call. */
  close(): Promise<void>;
}

export interface TransportOptions {
  baseUrl: string;
  apiKey: string;
  limits: GatewayLimits;
  safe: SafeText;
}

/** Error bodies are a few lines; more is not read. */
const MAX_ERROR_BODY_BYTES = 65_536;

export function createTransport({ baseUrl, apiKey, limits, safe }: TransportOptions): Transport {
  // HTTP/1.1 only, so that leaving one answer closes its socket. The waits are watched by the caller:
  // undici's own body timeout is held off by comments that carry no data.
  const agent = new Agent({
    allowH2: false,
    connect: { timeout: limits.connectMs },
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  function toHeaders({ json, streaming, keyHeader }: GatewayCall): Record<string, string> {
    const headers: Record<string, string> = {
      accept: streaming === true ? "text/event-stream, application/json" : "application/json",
      // A compressed stream arrives in blocks, not in words.
      "accept-encoding": "identity",
    };
    if (json !== undefined) {
      headers["content-type"] = "application/json";
      headers["content-length"] = String(Buffer.byteLength(json));
    }
    if (keyHeader === undefined) headers.authorization = `Bearer ${apiKey}`;
    else headers[keyHeader] = apiKey;
    return headers;
  }

  async function readFailure(
    { status, headers }: GatewayResponse,
    body: ResponseBody,
    call: GatewayCall,
    watch: Watch,
  ) {
    const text = await readErrorBody(body, limits.errorBodyMs, watch.signal);
    return toStatusError(status, headers, text, call.model, safe);
  }

  return {
    async send(call, watch) {
      const { origin, pathname } = new URL(`${baseUrl}${call.path}`);
      const { json = null, beforeSend } = call;
      let refused: { reason: unknown } | undefined;
      const body =
        json === null || beforeSend === undefined
          ? json
          : writeBody(json, () =>
              beforeSend().catch((reason: unknown) => {
                refused = { reason };
                throw reason;
              }),
            );
      const options = {
        origin,
        path: pathname,
        method: call.method,
        headers: toHeaders(call),
        body: body as Dispatcher.DispatchOptions["body"],
      };
      let answer: GatewayResponse;
      try {
        answer = await dispatchRequest(agent, options, watch.signal);
      } catch (error) {
        watch.signal.throwIfAborted();
        if (refused !== undefined) throw refused.reason;
        throw toConnectionError("unreachable", error);
      }
      const received = toPlainBody(answer);
      if (answer.status < 200 || answer.status >= 300) throw await readFailure(answer, received, call, watch);
      return received;
    },
    close: () => agent.destroy(),
  };
}

/** undici takes it when it is connected, and writes head and body at once: nothing lies between `beforeSend` and the request. */
async function* writeBody(json: string, beforeSend: () => Promise<void>): AsyncGenerator<string, void, void> {
  await beforeSend();
  yield json;
}

/** The body as text. Rejects with a `malformed` GatewayError beyond `maxBytes`, and otherwise as `send` does. */
export async function readBody(body: ResponseBody, maxBytes: number, watch: Watch): Promise<string> {
  const { text, end } = await collect(body, maxBytes);
  watch.signal.throwIfAborted();
  if (end === "whole") return text;
  if (end === "cap") throw new GatewayError("malformed", `The gateway's answer is larger than ${maxBytes} bytes.`);
  throw toConnectionError("interrupted", end.error);
}

/** Reads as much of an error's body as comes in time. Rejects only when the caller has left. */
async function readErrorBody(body: ResponseBody, withinMs: number, signal: AbortSignal): Promise<string> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, withinMs);
  try {
    const { text } = await collect(body, MAX_ERROR_BODY_BYTES, late.promise);
    signal.throwIfAborted();
    return text;
  } finally {
    clearTimeout(timer);
  }
}

interface Collected {
  text: string;
  end: "whole" | "cap" | { error: unknown };
}

/** Reads to the end, to the cap, or until `enough`; closes the connection unless it was the end. */
function collect(body: ResponseBody, maxBytes: number, enough?: Promise<void>): Promise<Collected> {
  const { promise, resolve } = Promise.withResolvers<Collected>();
  const parts: Buffer[] = [];
  let sizeBytes = 0;

  function finish(end: Collected["end"]): void {
    if (end !== "whole") body.destroy();
    resolve({ text: Buffer.concat(parts).toString("utf8", 0, maxBytes), end });
  }

  void enough?.then(() => finish("cap"));
  body.listen({
    onData(bytes) {
      parts.push(bytes);
      sizeBytes += bytes.length;
      if (sizeBytes > maxBytes) finish("cap");
    },
    onEnd: () => finish("whole"),
    onError: (error) => finish({ error }),
  });
  return promise;
}
