import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { readBody } from "./body.ts";
import type { Clock } from "./clock.ts";
import { createDispatcher, type DispatcherDeps, type Outcome } from "./dispatcher.ts";
import { Refusal, refuse } from "./refusals.ts";
import type { LoggedRequest, RequestLog } from "./request-log.ts";
import { findRoute, type Match, type RouteTable } from "./routes.ts";

const API = /^\/api\/v(\d+)(\/.*)$/;

export interface ServerDeps extends DispatcherDeps {
  clock: Clock;
  routes: RouteTable;
  requests: RequestLog;
  /** Serves everything outside the API, for example the CDN. */
  serveFile(request: IncomingMessage, response: ServerResponse, url: URL): void;
  changed(): void;
  closed: AbortSignal;
}

/** Discord's REST server: reads calls, logs them and responds. */
export function createRestServer(deps: ServerDeps): Server {
  const { clock, routes, requests, violations, closed } = deps;
  const dispatch = createDispatcher(deps);

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://localhost");
    const [, version, path = ""] = API.exec(url.pathname) ?? [];
    if (version === undefined) return deps.serveFile(request, response, url);
    const match = findRoute(routes, request.method ?? "", path);
    const route = match?.route.route ?? `${request.method} ${path}`;
    const entry = requests.begin(route, match?.params ?? {}, request.headers.host ?? "");
    deps.changed();
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const signal = AbortSignal.any([gone.signal, closed]);
    const arrived = { request, query: url.searchParams, match, version, entry, signal };
    const outcome = await answer(arrived).catch((error: unknown) => outcomeOf(error, arrived));
    entry.status = outcome?.status;
    entry.endedAtMs = clock.now();
    const { body } = outcome ?? {};
    if (outcome?.status === 429 && body !== undefined && "retry_after" in body) {
      entry.retryAfterMs = Number(body["retry_after"]) * 1_000;
    }
    if (outcome === undefined) request.socket.destroy();
    else send(response, outcome);
    deps.changed();
  }

  async function answer({ request, query, match, version, entry, signal }: Arrived): Promise<Outcome> {
    const body = await readBody(request);
    entry.body = body.json;
    entry.fileNames = body.files.map(({ name }) => name);
    if (version !== "10") throw refuse("invalid-version");
    if (match === undefined) {
      violations.record("unknown-route", `${entry.route} is not part of the simulator.`);
      throw refuse("unknown-route");
    }
    const authorization = request.headers.authorization ?? "";
    return await dispatch({ match, authorization, query, body, entry, signal });
  }

  /** Returns undefined if no one waits for the response. */
  function outcomeOf(error: unknown, { entry, request }: Arrived): Outcome | undefined {
    // The caller disconnected before it had sent everything.
    if (!request.complete) return undefined;
    if (error instanceof Refusal) return { status: error.status, body: error.body, headers: error.headers };
    // Record a bug in the simulator, so that it does not look like a failure of Discord.
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    violations.record("simulator-failure", `${entry.route}: ${message}`);
    return { status: 500, body: { message, code: 0 } };
  }

  return createServer((request, response) => {
    receive(request, response).catch(() => request.socket.destroy());
  });
}

interface Arrived {
  request: IncomingMessage;
  query: URLSearchParams;
  match: Match | undefined;
  version: string;
  entry: LoggedRequest;
  signal: AbortSignal;
}

function send(response: ServerResponse, { status, body, headers = {} }: NonNullable<Outcome>): void {
  response.writeHead(status, { ...headers, ...(body === undefined ? {} : { "Content-Type": "application/json" }) });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}
