import { Agent, interceptors } from "undici";
import { dispatchRequest, type GatewayResponse, type ResponseBody } from "./body.ts";
import { GatewayError } from "./errors.ts";
import { toConnectionError, toStatusError } from "./failures.ts";
import type { GatewayLimits } from "./limits.ts";
import type { SafeText } from "./safe-text.ts";
import type { Watch } from "./watch.ts";

export interface GatewayCall {
  method: "GET" | "POST";
  /** Paths of `openai` start below the version; paths of `google` include the version. */
  api: "openai" | "google";
  path: string;
  body?: string | Buffer;
  /** The content type of a `body` that is not JSON. */
  contentType?: string;
  /** True if the response can be an event stream. */
  streaming?: boolean;
  model?: string;
  /** The header for the key instead of `Authorization`. */
  keyHeader?: string;
}

/**
 * Sends a call and resolves to the body of a 2xx response. The caller must destroy the body. Rejects with a
 * GatewayError for another response or for no response, and with the signal's reason when `watch` ends.
 */
export type Send = (call: GatewayCall, watch: Watch) => Promise<ResponseBody>;

export interface TransportOptions {
  baseUrl: string;
  apiKey: string;
  /** Sent with every request. They replace Palaver's headers of the same name. */
  headers?: Readonly<Record<string, string>> | undefined;
  limits: GatewayLimits;
  safe: SafeText;
}

/** The limit for an error's body, which usually has a few lines. */
const MAX_ERROR_BODY_BYTES = 65_536;

export function createTransport({ baseUrl, apiKey, headers: extra = {}, limits, safe }: TransportOptions) {
  // Uses only HTTP/1.1, so that abandoning a response closes its socket. Callers set their own timeouts, because
  // undici's body timeout does not expire while comments without data arrive.
  const agent = new Agent({
    allowH2: false,
    connect: { timeout: limits.connectMs },
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  // Some proxies compress responses without being asked.
  const client = agent.compose(interceptors.decompress({ skipErrorResponses: false }));
  const roots = toRoots(baseUrl);
  /** The root under which an OpenAI path has worked. */
  let root: string | undefined;

  function toHeaders({
    body,
    contentType = "application/json",
    streaming,
    keyHeader,
  }: GatewayCall): Record<string, string> {
    const headers: Record<string, string> = {
      accept: streaming === true ? "text/event-stream, application/json" : "application/json",
      // A compressed stream would arrive in blocks instead of words.
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
    const { method, body = null } = call;
    const options = { origin, path: pathname, method, headers: toHeaders(call), body };
    let answer: GatewayResponse;
    try {
      answer = await dispatchRequest(client, options, watch.signal);
    } catch (error) {
      watch.signal.throwIfAborted();
      throw toConnectionError("unreachable", error);
    }
    const { status, headers, body: received } = answer;
    if (![undefined, "identity"].includes(headers["content-encoding"])) {
      received.destroy();
      throw new GatewayError("malformed", "The gateway compressed its response in a way that Palaver did not ask for.");
    }
    if (status >= 200 && status < 300) return received;
    const { text } = await collect(received, MAX_ERROR_BODY_BYTES, limits.errorBodyMs);
    watch.signal.throwIfAborted();
    throw toStatusError(status, headers, text, call.model, safe);
  }

  /** Tries each root until one has the path. If none has it, rejects with the first failure. */
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

/** True if the address does not know this path. If only the model is unknown, an error object says so. */
function isPathUnknown(error: unknown): boolean {
  if (!(error instanceof GatewayError) || (error.status !== 404 && error.status !== 405)) return false;
  const isAboutPath = /^( It said: )?([\w ]{0,20}not found|method not allowed)?\.?$|\b(path|route|url|endpoint)\b/i;
  return error.reason === undefined && (error.isFormless || isAboutPath.test(error.quote));
}

/**
 * Returns the possible roots of paths at this base address. The interface's form, below `/v1`, is first, unless the
 * address ends with a version or the API's name, as some vendors' addresses do.
 */
function toRoots(baseUrl: string): { openai: string[]; google: string } {
  const hasVersion = /(\/v\d\w*(\/openai)?|\/openapi)$/.test(baseUrl);
  const openai = hasVersion ? [baseUrl, `${baseUrl}/v1`] : [`${baseUrl}/v1`, baseUrl];
  return { openai, google: baseUrl.replace(/(\/v1beta)?\/openai$/, "") };
}

/** Reads the body as text. Rejects as `malformed` if the body exceeds `maxBytes`, and otherwise as `send` does. */
export async function readBody(body: ResponseBody, maxBytes: number, watch: Watch): Promise<string> {
  const { text, end } = await collect(body, maxBytes);
  watch.signal.throwIfAborted();
  if (end === "whole") return text;
  if (end === "cap") throw new GatewayError("malformed", `The gateway's response is larger than ${maxBytes} bytes.`);
  throw toConnectionError("interrupted", end.error);
}

interface Collected {
  text: string;
  end: "whole" | "cap" | { error: unknown };
}

/** Reads the body to its end, up to `maxBytes` or for `withinMs`. Closes the connection unless the end was reached. */
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
