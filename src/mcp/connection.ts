import { setTimeout as sleep } from "node:timers/promises";
import type {
  CallToolResult,
  Client,
  GetPromptResult,
  ListResourcesResult,
  ReadResourceResult,
} from "@modelcontextprotocol/client";
import type { Logger } from "pino";
import { untilAborted } from "../concurrency/deadlines.ts";
import { createFairTurns } from "../concurrency/fair-turns.ts";
import { type McpServerConfig, secretsOfMcp } from "../config/mcp-servers.ts";
import { isName } from "../log/fields.ts";
import { createRedactor } from "../log/redact.ts";
import { LoggableError } from "../port/errors.ts";
import { ToolError } from "../tools/tool.ts";
import { type Offer, openSession, type Sdk, type Session } from "./session.ts";
import type { TokenStore } from "./tokens.ts";

const AGAIN_MIN_MS = 1_000;
const AGAIN_MAX_MS = 300_000;
/** A server that lives as long has begun well: the next pause is the shortest again. */
const STEADY_MS = 60_000;
const MAX_PROBLEM_CHARS = 200;
/** Longest that a call waits for a new session where the server has forgotten the one it was made in. */
const RENEWAL_MS = 10_000;
/** Words of the network for a server that was never reached. */
const UNREACHED = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);
/** What the SDK, which is loaded with the first server, calls it: `SdkErrorCode.InvalidResult`. */
const INVALID_RESULT = "INVALID_RESULT";
/** JSON-RPC's codes for a request that was refused as it is, before anything of it was done. */
const UNDONE = new Set([-32_700, -32_600, -32_601, -32_602]);
/** Longest that a session is asked whether it lives. */
const PING_MS = 5_000;
/** Calls of one server's tools at a time, of all conversations together. */
const MAX_CALLS = 8;

export type ServerState = "connecting" | "ready" | "failed";

/** Progress of a call, as the server tells it. Untrusted text. */
export type OnProgress = (progress: {
  progress: number;
  total?: number | undefined;
  message?: string | undefined;
}) => void;

/**
 * A server, reconnected as long as it is wanted. A `ToolError` says whether anything may be done; after other errors
 * nobody knows.
 */
export interface McpConnection {
  readonly config: McpServerConfig;
  readonly state: ServerState;
  /** Why it is not ready, in words without secrets; undefined when it is. */
  readonly problem: string | undefined;
  /** Stays as it was while the server is away. */
  readonly offer: Offer;
  /** No more than a few at a time; those who wait, `owner`s of them, take turns. */
  callTool(
    name: string,
    args: Record<string, unknown>,
    owner: string,
    onProgress: OnProgress,
    signal: AbortSignal,
  ): Promise<CallToolResult>;
  getPrompt(name: string, args: Record<string, string>, signal: AbortSignal): Promise<GetPromptResult>;
  listResources(signal: AbortSignal): Promise<ListResourcesResult>;
  readResource(uri: string, signal: AbortSignal): Promise<ReadResourceResult>;
  /** Resolves when it is ready for the first time, or could not be reached once. */
  readonly tried: Promise<void>;
  /** Ends the server's program too. */
  close(): Promise<void>;
}

/** Begins to connect. `onOffer` is told when the server offers other things than before. */
export function connectTo(
  config: McpServerConfig,
  onOffer: () => void,
  log: Logger,
  tokens: TokenStore | undefined,
): McpConnection {
  const { name: server, timeoutMs: timeout } = config;
  const closing = new AbortController();
  const tried = Promise.withResolvers<void>();
  const toProblem = createProblems(config);
  const status: Pick<McpConnection, "state" | "problem"> = { state: "connecting", problem: "it is being started" };
  let live: Session | undefined;
  let coming = Promise.withResolvers<void>();
  let offer: Offer = { tools: [], prompts: [], hasResources: false };
  const inPlace = createPlaces(config);

  async function list(session: Session): Promise<void> {
    offer = await session.list();
    onOffer();
  }

  /** Connects, and resolves to why the connection has ended. Rejects when there was none. */
  async function serve(): Promise<LoggableError> {
    const onChanged = (session: Session) => {
      list(session).catch((error: unknown) => {
        log.warn({ server, err: toProblem(error) }, "the tools of a server could not be listed again");
      });
    };
    const onError = (error: unknown) => log.debug({ server, err: toProblem(error) }, "a tool server: error");
    const session = await openSession({ config, onChanged, onError, tokens, log }, closing.signal);
    const leave = () => session.end(new LoggableError("it is not wanted any more"));
    closing.signal.addEventListener("abort", leave, { once: true });
    try {
      await list(session);
      live = session;
      coming.resolve();
      coming = Promise.withResolvers();
      Object.assign(status, { state: "ready", problem: undefined });
      log.info({ server, tools: offer.tools.length }, "a tool server is ready");
      tried.resolve();
      void followChanges(session, onChanged, onError);
      return await session.ended;
    } finally {
      live = undefined;
      closing.signal.removeEventListener("abort", leave);
      await session.close();
    }
  }

  async function keepConnected(): Promise<void> {
    const onAway = (err: LoggableError, pauseMs: number) => {
      Object.assign(status, { state: "failed", problem: err.message });
      tried.resolve();
      log.warn({ server, err, pauseMs }, "a tool server is away and is tried again");
    };
    await serveAgain(() => serve().catch(toProblem), onAway, closing.signal);
    tried.resolve();
  }

  /** Asks the server for something, and says of a failure whether anything was done. */
  async function ask<T>(request: (client: Client) => Promise<T>, signal: AbortSignal, isAgain = false): Promise<T> {
    const session = live;
    if (session === undefined) {
      throw new ToolError(`The server "${server}" cannot be reached now. Answer without it, and say so.`);
    }
    const { promise: renewed } = coming;
    try {
      return await request(session.client);
    } catch (error) {
      signal.throwIfAborted();
      const problem = toProblem(error);
      if (isAgain || !(await isForgotten(error, session, signal))) throw toCallError(error, server, session, problem);
      session.end(problem);
      await untilAborted(renewed, untilRenewed(signal)).catch(() => signal.throwIfAborted());
    }
    return ask(request, signal, true);
  }

  const running = keepConnected();

  return {
    config,
    get state() {
      return status.state;
    },
    get problem() {
      return status.problem;
    },
    get offer() {
      return offer;
    },
    callTool(name, args, owner, onprogress, signal) {
      const options = { timeout, maxTotalTimeout: timeout, signal, onprogress };
      const call = (client: Client) => client.callTool({ name, arguments: args }, options).catch(toUnreadable);
      return inPlace(owner, () => ask(call, signal), signal);
    },
    getPrompt: (name, args, signal) =>
      ask((client) => client.getPrompt({ name, arguments: args }, { timeout, signal }), signal),
    listResources: (signal) => ask((client) => client.listResources(undefined, { timeout, signal }), signal),
    readResource: (uri, signal) => ask((client) => client.readResource({ uri }, { timeout, signal }), signal),
    tried: tried.promise,
    async close() {
      closing.abort(new Error("It is not wanted any more."));
      await running;
    },
  };
}

/** Serves until `signal` aborts. Pauses grow while a server soon leaves again; `onAway` hears reason and length. */
async function serveAgain(
  serve: () => Promise<LoggableError>,
  onAway: (problem: LoggableError, pauseMs: number) => void,
  signal: AbortSignal,
): Promise<void> {
  for (let pauseMs = AGAIN_MIN_MS; ; pauseMs = Math.min(AGAIN_MAX_MS, pauseMs * 2)) {
    const begunAt = performance.now();
    const problem = await serve();
    if (signal.aborted) return;
    if (performance.now() - begunAt > STEADY_MS) pauseMs = AGAIN_MIN_MS;
    onAway(problem, pauseMs);
    const wait = pauseMs * (0.5 + Math.random() / 2);
    await sleep(wait, undefined, { signal, ref: false }).catch(() => {});
    if (signal.aborted) return;
  }
}

/** Opens the stream on which a server tells of changes anew where it has ended: something may have changed meanwhile. */
async function followChanges(
  session: Session,
  onChanged: (session: Session) => void,
  onAway: (problem: LoggableError) => void,
): Promise<void> {
  const { client, ended } = session;
  let stream = client.autoOpenedSubscription;
  if (stream === undefined) return;
  const { honoredFilter } = stream;
  const over = new AbortController();
  void ended.then(() => over.abort());
  const follow = async () => {
    if (stream === undefined) {
      stream = await client.listen(honoredFilter, { signal: over.signal });
      onChanged(session);
    }
    const how = await stream.closed;
    stream = undefined;
    return new LoggableError(`the stream has ended: ${how}`);
  };
  await serveAgain(() => follow().catch((error) => new LoggableError(describeKind(error))), onAway, over.signal);
}

/** Bounds the calls of a server that run at a time. One that finds no place in time is not made. */
function createPlaces({ name, timeoutMs }: McpServerConfig) {
  const inTurn = createFairTurns(MAX_CALLS);
  return async <T>(owner: string, call: () => Promise<T>, signal: AbortSignal): Promise<T> => {
    const patience = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    let hasBegun = false;
    const begin = () => {
      hasBegun = true;
      return call();
    };
    try {
      return await inTurn(owner, begin, patience);
    } catch (error) {
      signal.throwIfAborted();
      if (hasBegun) throw error;
      throw new ToolError(`The server "${name}" is busy: not run. Answer without it, and say so.`);
    }
  };
}

function untilRenewed(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(RENEWAL_MS)]);
}

function isUnreached(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("code" in error && UNREACHED.has(String(error.code))) || isUnreached(error.cause);
}

/** Says what is wrong on one short line, without the server's secrets; its own words are a quote. */
function createProblems(config: McpServerConfig): (error: unknown) => LoggableError {
  const { text: redact } = createRedactor(secretsOfMcp(config));
  return (error) => {
    const text = redact(describeError(error))
      .replace(/[\p{C}\s]+/gu, " ")
      .trim()
      .slice(0, MAX_PROBLEM_CHARS);
    return new LoggableError(describeKind(error), { quote: `: ${text}` });
  };
}

/** The name of an error, its answer's number, and the code of whatever made it fail. */
function describeKind(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const status = "status" in error && typeof error.status === "number" ? `HTTP ${error.status}` : "";
  const code = Reflect.get(deepestCause(error), "code");
  return [error.name, status, isName(String(code ?? "")) ? String(code) : ""].filter((word) => word !== "").join(" ");
}

/** Describes an error by its innermost cause: why a connection failed. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message } = deepestCause(error);
  const more = error.message.includes(message) ? "" : `, ${message}`;
  return error.message.replace(/[:\s]+$/, "") + more;
}

function deepestCause(error: Error): Error {
  return error.cause instanceof Error ? deepestCause(error.cause) : error;
}

/**
 * A server that was started anew, or cleans up, refuses whatever names the session that it knew: with 404, many with 400.
 * With 400 some refuse one call, so the session is asked.
 */
async function isForgotten(error: unknown, { sdk, client }: Session, signal: AbortSignal): Promise<boolean> {
  const { transport } = client;
  const hasSession = transport?.sessionId !== undefined || transport instanceof sdk.SSEClientTransport;
  const status = toStatus(error, sdk);
  if (!hasSession || status !== 400) return hasSession && status === 404;
  try {
    await client.ping({ timeout: PING_MS, signal });
    return false;
  } catch (refusal) {
    signal.throwIfAborted();
    return [400, 404].includes(toStatus(refusal, sdk) ?? 0);
  }
}

/** The number with which a server refused a request. The SDK's transport for `sse` has it in its words alone. */
function toStatus(error: unknown, { SdkHttpError }: Sdk): number | undefined {
  if (error instanceof SdkHttpError) return error.status;
  const [, status] = /^Error: Error POSTing to endpoint \(HTTP (\d{3})\)/.exec(String(error)) ?? [];
  return status === undefined ? undefined : Number(status);
}

/** A result came, so the call was made, also where the SDK does not know the form of it. */
function toUnreadable(error: unknown): CallToolResult {
  if (!(error instanceof Error && "code" in error && error.code === INVALID_RESULT)) throw error;
  return { content: [{ type: "text", text: "[The call was made; its result has a form that cannot be read here.]" }] };
}

function toCallError(error: unknown, server: string, session: Session, problem: LoggableError): Error {
  const { SdkError, SdkErrorCode, ProtocolError } = session.sdk;
  if (error instanceof ProtocolError) {
    const mayBeDone = !UNDONE.has(error.code);
    const what = mayBeDone ? "answered the call with an error" : "refused the call";
    return new ToolError(`The server "${server}" ${what}${problem.quote}`, { mayBeDone });
  }
  const status = toStatus(error, session.sdk);
  const isRefused = status !== undefined && status >= 400 && status < 500;
  const isUnsent = (error instanceof SdkError && error.code === SdkErrorCode.NotConnected) || isUnreached(error);
  // Any other failure is that of one call, and cuts no other.
  if (isUnsent) session.end(problem);
  if (isRefused || isUnsent) {
    return new ToolError(`The server "${server}" did not take the call. Answer without it, and say so.`);
  }
  return problem;
}
