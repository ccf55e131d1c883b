import { Agent, type Dispatcher, interceptors } from "undici";
import { dispatchRequest, type GatewayResponse, type ResponseBody } from "./body.ts";
import { GatewayError } from "./errors.ts";
import { toConnectionError, toStatusError } from "./failures.ts";
import type { GatewayLimits } from "./limits.ts";
import type { SafeText } from "./safe-text.ts";
import type { Watch } from "./watch.ts";

export interface GatewayCall {
  method: "GET" | "POST";
  /** Whose paths `path` belongs to: OpenAI's, below the version, or Google's, with the version. */
  api: "openai" | "google";
  path: string;
  body?: string | Buffer;
  /** The type of `body`, if it is no JSON. */
  contentType?: string;
  /** The answer may come as events. */
  streaming?: boolean;
  model?: string;
  /** Header that carries the key instead of `Authorization`. */
  keyHeader?: string;
  beforeSend?: (() => Promise<void>) | undefined;
}

/**
 * Sends a call and resolves to the body of a 2xx answer; the caller destroys it. Rejects with a GatewayError for every
 * other answer and if none comes, with the signal's reason when `watch` ends, and with the reason of `beforeSend`.
 */
export type Send = (call: GatewayCall, watch: Watch) => Promise<ResponseBody>;

export interface TransportOptions {
  baseUrl: string;
  apiKey: string;
  /** Sent with every call; they replace ours of the same name. */
  headers?: Readonly<Record<string, string>> | undefined;
  limits: GatewayLimits;
  safe: SafeText;
}

/** Error bodies are a few lines; more is not read. */
const MAX_ERROR_BODY_BYTES = 65_536;

export function createTransport({ baseUrl, apiKey, headers: extra = {}, limits, safe }: TransportOptions) {
  // HTTP/1.1 only, so that leaving one answer closes its socket. The caller watches the waits:
  // comments that carry no data hold off undici's own body timeout.
  const agent = new Agent({
    allowH2: false,
    connect: { timeout: limits.connectMs },
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  // A proxy may compress an answer although nobody asked for it.
  const client = agent.compose(interceptors.decompress({ skipErrorResponses: false }));
  const roots = toRoots(baseUrl);
  /** The root of OpenAI's paths that has answered. */
  let root: string | undefined;

  function toHeaders({
    body,
    contentType = "application/json",
    streaming,
    keyHeader,
  }: GatewayCall): Record<string, string> {
    const headers: Record<string, string> = {
      accept: streaming === true ? "text/event-stream, application/json" : "application/json",
      // A compressed stream arrives in blocks, not in words.
      "accept-encoding": "identity",
    };
    if (body !== undefined) {
      headers["content-type"] = contentType;
      headers["content-length"] = String(Buffer.byteLength(body));
    }
    if (keyHeader === undefined) headers.authorization = `Bearer ${apiKey}`;
    else headers[keyHeader] = apiKey;
    return { ...headers, ...extra };
  }

  async function sendTo(address: string, call: GatewayCall, watch: Watch): Promise<ResponseBody> {
    const { origin, pathname } = new URL(address);
    const { body = null, beforeSend } = call;
    let refused: { reason: unknown } | undefined;
    const confirm = async () => {
      await beforeSend?.().catch((reason: unknown) => {
        refused = { reason };
        throw reason;
      });
    };
    const options = {
      origin,
      path: pathname,
      method: call.method,
      headers: toHeaders(call),
      body: (body === null || beforeSend === undefined
        ? body
        : writeBody(body, confirm)) as Dispatcher.DispatchOptions["body"],
    };
    let answer: GatewayResponse;
    try {
      answer = await dispatchRequest(client, options, watch.signal);
    } catch (error) {
      watch.signal.throwIfAborted();
      if (refused !== undefined) throw refused.reason;
      throw toConnectionError("unreachable", error);
    }
    const { status, headers, body: received } = answer;
    if (![undefined, "identity"].includes(headers["content-encoding"])) {
      received.destroy();
      throw new GatewayError("malformed", "The gateway's answer is compressed in a way that was not asked for.");
    }
    if (status >= 200 && status < 300) return received;
    const { text } = await collect(received, MAX_ERROR_BODY_BYTES, limits.errorBodyMs);
    watch.signal.throwIfAborted();
    throw toStatusError(status, headers, text, call.model, safe);
  }

  /** Tries the roots until one has the path. If none has it, rejects with the first failure. */
  async function sendBelowRoot(call: GatewayCall, watch: Watch): Promise<ResponseBody> {
    let failure: unknown;
    for (const candidate of root === undefined ? roots.openai : [root]) {
      try {
        const received = await sendTo(`${candidate}${call.path}`, call, watch);
        root = candidate;
        return received;
      } catch (error) {
        if (!isPathUnknown(error)) throw error;
        failure ??= error;
      }
    }
    throw failure;
  }

  const send: Send = (call, watch) =>
    call.api === "google" ? sendTo(`${roots.google}${call.path}`, call, watch) : sendBelowRoot(call, watch);
  return { send, close: () => agent.destroy() };
}

/** Nothing is at the address: another root may have it. A missing model has an error object that says so. */
function isPathUnknown(error: unknown): boolean {
  if (!(error instanceof GatewayError) || (error.status !== 404 && error.status !== 405)) return false;
  const isAboutPath = /^( It said: )?([\w ]{0,20}not found|method not allowed)?\.?$|\b(path|route|url|endpoint)\b/i;
  return error.reason === undefined && (error.isFormless || isAboutPath.test(error.quote));
}

/**
 * Where paths may be below a base address. The interface's own form, below `/v1`, comes first, unless the address ends with
 * a version or a name of the API itself, as the addresses of some vendors do.
 */
function toRoots(baseUrl: string): { openai: string[]; google: string } {
  const hasVersion = /(\/v\d\w*(\/openai)?|\/openapi)$/.test(baseUrl);
  const openai = hasVersion ? [baseUrl, `${baseUrl}/v1`] : [`${baseUrl}/v1`, baseUrl];
  return { openai, google: baseUrl.replace(/(\/v1beta)?\/openai$/, "") };
}

/** undici reads it when it is connected, and writes head and body at once: nothing happens between `confirm` and the request. */
async function* writeBody(body: string | Buffer, confirm: () => Promise<void>): AsyncGenerator<string | Buffer> {
  await confirm();
  yield body;
}

/** The body as text. Rejects with a `malformed` GatewayError beyond `maxBytes`, and otherwise as `send` does. */
export async function readBody(body: ResponseBody, maxBytes: number, watch: Watch): Promise<string> {
  const { text, end } = await collect(body, maxBytes);
  watch.signal.throwIfAborted();
  if (end === "whole") return text;
  if (end === "cap") throw new GatewayError("malformed", `The gateway's answer is larger than ${maxBytes} bytes.`);
  throw toConnectionError("interrupted", end.error);
}

interface Collected {
  text: string;
  end: "whole" | "cap" | { error: unknown };
}

/** Reads to the end or to the cap, no longer than `withinMs`; closes the connection unless it was the end. */
function collect(body: ResponseBody, maxBytes: number, withinMs?: number): Promise<Collected> {
  const { promise, resolve } = Promise.withResolvers<Collected>();
  const parts: Buffer[] = [];
  let sizeBytes = 0;

  const timer = withinMs === undefined ? undefined : setTimeout(() => finish("cap"), withinMs);

  function finish(end: Collected["end"]): void {
    clearTimeout(timer);
    if (end !== "whole") body.destroy();
    resolve({ text: Buffer.concat(parts).toString("utf8", 0, maxBytes), end });
  }

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
