import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import { createRateLimit } from "./access.ts";
import { completeChat } from "./chat.ts";
import { ApiError, toErrorBody } from "./errors.ts";
import { type Handler, type SandboxContext, type Served, sendJson } from "./exchange.ts";
import { FAULTS, type Faults } from "./faults.ts";
import { generateImage } from "./images.ts";
import { listGoogleModels, listModels, showGoogleModel, showModel } from "./models.ts";

export interface SandboxOptions {
  host: string;
  /** The port to listen on; 0 is any free port. */
  port: number;
  log: Logger;
  /** The limit for each key and model. `Infinity` removes it. */
  requestsPerMinute?: number;
  /** The speed of answers, unless the user's words request another. `Infinity` sends as fast as the caller reads. */
  tokensPerSecond?: number;
  /** Origins with private addresses from which the sandbox can fetch files, such as `http://127.0.0.1:3000`. */
  trustedFileOrigins?: readonly string[];
  /** True if the user did not ask for a sandbox: the first answer of a conversation says that its text is made up. */
  isPractice?: boolean;
  /** Faults in addition to the faults of every sandbox. */
  faults?: Faults;
}

export interface Sandbox {
  /** The `{base_url}` in the interface. */
  url: string;
  readonly served: Readonly<Served>;
  /** Closes all connections and stops. Resolves when the port is free. */
  close(): Promise<void>;
}

const REQUESTS_PER_MINUTE = 3000;
/** Slow enough for people to see the answer grow, but not so slow that they get bored. */
const TOKENS_PER_SECOND = 60;
const REQUEST_TIMEOUT_MS = 60_000;

interface Route {
  method: "GET" | "POST";
  pattern: RegExp;
  handle: Handler;
}

const ROUTES: readonly Route[] = [
  { method: "GET", pattern: /^\/healthz$/, handle: async ({ response }) => sendJson(response, { status: "ok" }) },
  { method: "GET", pattern: /^\/v1\/models$/, handle: listModels },
  { method: "POST", pattern: /^\/v1\/chat\/completions$/, handle: completeChat },
  // Google's clients also call this path under /v1, and as a stream.
  {
    method: "POST",
    pattern: /^\/v1(?:beta)?\/models\/([^/]+):(generateContent|streamGenerateContent)$/,
    handle: generateImage,
  },
  { method: "GET", pattern: /^\/v1\/models\/([^/:]+)$/, handle: showModel },
  { method: "GET", pattern: /^\/v1beta\/models$/, handle: listGoogleModels },
  { method: "GET", pattern: /^\/v1beta\/models\/([^/:]+)$/, handle: showGoogleModel },
];

/** Some callers' base URL contains the version twice, or not at all. */
const PATHS =
  "There are GET /v1/models, POST /v1/chat/completions and POST /v1beta/models/{model}:generateContent behind the base URL.";

/** Starts a gateway with the whole interface and its practice models. Rejects if it cannot listen on the address. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { host, port, log } = options;
  const context: SandboxContext = {
    log,
    countRequest: createRateLimit(options.requestsPerMinute ?? REQUESTS_PER_MINUTE, () => performance.now()),
    tokensPerSecond: options.tokensPerSecond ?? TOKENS_PER_SECOND,
    trustedFileOrigins: options.trustedFileOrigins ?? [],
    isPractice: options.isPractice ?? false,
    faults: { ...FAULTS, ...options.faults },
    metOnce: new Set(),
    served: { requests: 0, promptTokens: 0, completionTokens: 0, pictures: 0, left: 0 },
  };
  const answering = new WeakSet<Duplex>();
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    answering.add(request.socket);
    response.on("close", () => answering.delete(request.socket));
    void serve(request, response, context);
  });
  refuseOnTheWire(server, (socket) => answering.has(socket));
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address() as AddressInfo;

  return {
    url: `http://${address.family === "IPv6" ? `[${address.address}]` : address.address}:${address.port}`,
    served: context.served,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function serve(request: IncomingMessage, response: ServerResponse, context: SandboxContext): Promise<void> {
  const left = new AbortController();
  response.on("close", () => left.abort());
  response.on("error", () => left.abort());
  try {
    const { handle, parameters } = findRoute(request);
    await handle({ request, response, parameters, signal: left.signal, context });
  } catch (error) {
    // A disconnected caller gets no response, and the server did nothing wrong.
    if (left.signal.aborted || request.socket.destroyed) context.log.debug("the caller left");
    else refuse(response, error, context.log);
  }
}

function findRoute({ method, url = "/" }: IncomingMessage): { handle: Handler; parameters: string[] } {
  // A proxy can send the whole URL as the request target.
  const path = url.replace(/^https?:\/\/[^/?]*/i, "").split("?", 1)[0] ?? "/";
  const routes = ROUTES.filter(({ pattern }) => pattern.test(path));
  // Node omits the body of a response to HEAD.
  const asked = method === "HEAD" ? "GET" : method;
  const route = routes.find((candidate) => candidate.method === asked);
  if (route !== undefined) {
    return { handle: route.handle, parameters: (route.pattern.exec(path) ?? []).slice(1).map(decode) };
  }
  if (routes.length === 0) {
    throw new ApiError(`There is nothing at ${method} ${path.slice(0, 200)}. ${PATHS}`, {
      status: 404,
      type: "invalid_request_error",
      code: "unknown_path",
    });
  }
  const allow = routes.map((candidate) => (candidate.method === "GET" ? "GET, HEAD" : candidate.method)).join(", ");
  throw new ApiError(`${method} is not allowed here. Use ${allow}.`, {
    status: 405,
    type: "invalid_request_error",
    code: "method_not_allowed",
    headers: { allow },
  });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function refuse(response: ServerResponse, error: unknown, log: Logger): void {
  const refusal = error instanceof ApiError ? error : toInternalError(error, log);
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.statusCode = refusal.status;
  for (const [name, value] of Object.entries(refusal.headers)) response.setHeader(name, value);
  sendJson(response, toErrorBody(refusal));
}

function toInternalError(error: unknown, log: Logger): ApiError {
  log.error({ err: error }, "the sandbox failed on a request");
  return new ApiError("The sandbox failed on this request. Its log says why.", {
    status: 500,
    type: "server_error",
    code: "internal_error",
  });
}

/** The responses to requests that Node refuses before the handler runs, by Node's error code. */
const REFUSALS: Readonly<Record<string, { status: number; code: string; message: string }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, code: "headers_too_large", message: "The headers of the request are too large." },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: "request_timeout", message: "The request did not arrive in time." },
};
const MALFORMED = { status: 400, code: "malformed_request", message: "The request is not HTTP that can be read." };

/** Refuses invalid requests with the usual error object. Closes the connection if its response has started. */
function refuseOnTheWire(server: Server, isAnswering: (socket: Duplex) => boolean): void {
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || isAnswering(socket)) {
      socket.destroy();
      return;
    }
    const { status, code, message } = REFUSALS[error.code ?? ""] ?? MALFORMED;
    const body = JSON.stringify(toErrorBody(toRefusal(status, code, message)));
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      "content-type: application/json; charset=utf-8",
      `content-length: ${Buffer.byteLength(body)}`,
      "connection: close",
    ];
    socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
  });
  server.on("checkExpectation", (_request: IncomingMessage, response: ServerResponse) => {
    response.statusCode = 417;
    sendJson(response, toErrorBody(toRefusal(417, "unknown_expectation", "Only Expect: 100-continue is understood.")));
  });
}

function toRefusal(status: number, code: string, message: string): ApiError {
  return new ApiError(message, { status, type: "invalid_request_error", code });
}
