import { setTimeout as sleep } from "node:timers/promises";
import type {
  CallToolResult,
  GetPromptResult,
  Tool as ListedTool,
  ReadResourceResult,
  RequestOptions,
  Resource,
} from "@modelcontextprotocol/client";
import type { Logger } from "pino";
import { untilAborted } from "../concurrency/deadlines.ts";
import { createFairTurns } from "../concurrency/fair-turns.ts";
import { createNewest } from "../concurrency/newest.ts";
import type { McpServerConfig } from "../config/mcp-servers.ts";
import { LoggableError } from "../port/errors.ts";
import { ToolError } from "../tools/tool.ts";
import { createFailures, describeKind, toStatus, toUnreadable } from "./failure.ts";
import type { OnFault } from "./repair.ts";
import { type Offer, openSession, type Session } from "./session.ts";
import type { TokenStore } from "./tokens.ts";

const AGAIN_MIN_MS = 1_000;
const AGAIN_MAX_MS = 300_000;
/** If a session lasted at least this long, the pause before the next attempt is the shortest one again. */
const STEADY_MS = 60_000;
/** A call waits at most this long for a new session after the server has forgotten the old one. */
const RENEWAL_MS = 10_000;
/** Maximum number of faulty fields that are logged for one server. */
const MAX_FAULTS = 50;
const PING_MS = 5_000;
/** Maximum number of concurrent tool calls per server, from all conversations together. */
const MAX_CALLS = 8;

export type ServerState = "connecting" | "ready" | "failed";

/** Receives a call's progress as the server reports it. The text is untrusted. */
export type OnProgress = (progress: {
  progress: number;
  total?: number | undefined;
  message?: string | undefined;
}) => void;

/**
 * A connection to a server, which is restored until `close`. A call rejects with a `ToolError` if the server reported a
 * failure or the call was never sent. After any other error, no one knows whether the tool ran.
 */
export interface McpConnection {
  readonly config: McpServerConfig;
  readonly state: ServerState;
  /** Why the server is not ready, without secrets; undefined if it is ready. */
  readonly problem: string | undefined;
  /** The server's tools, prompts and resources. They stay the same while the server is unavailable. */
  readonly offer: Offer;
  /** Calls a tool. At most `MAX_CALLS` calls run at the same time; owners of waiting calls take turns. */
  callTool(
    tool: ListedTool,
    args: Record<string, unknown>,
    owner: string,
    onProgress: OnProgress,
    signal: AbortSignal,
  ): Promise<CallToolResult>;
  getPrompt(name: string, args: Record<string, string>, signal: AbortSignal): Promise<GetPromptResult>;
  listResources(signal: AbortSignal): Promise<Resource[]>;
  readResource(uri: string, signal: AbortSignal): Promise<ReadResourceResult>;
  /** Resolves when the server is ready or the first attempt has failed. */
  readonly tried: Promise<void>;
  /** Also stops the server's program. */
  close(): Promise<void>;
}

/** Timeout for a connection attempt, including the time in which npx downloads the program. */
const CONNECT_MS = 60_000;

export interface ConnectionOptions {
  /** Stores OAuth tokens. Absent: each connection requests its own tokens. */
  tokens?: TokenStore | undefined;
  connectMs?: number;
  /** Patterns of the platforms' tokens, which are redacted in error messages. */
  tokenForms?: readonly RegExp[];
}

/** Starts to connect. Calls `onOffer` when the server's tools, prompts or resources change. */
export function connectTo(
  config: McpServerConfig,
  onOffer: () => void,
  log: Logger,
  { tokens, connectMs = CONNECT_MS, tokenForms = [] }: ConnectionOptions,
): McpConnection {
  const { name: server, timeoutMs: timeout } = config;
  const closing = new AbortController();
  const tried = Promise.withResolvers<void>();
  const { toProblem, toCallError } = createFailures(config, tokenForms);
  const status: Pick<McpConnection, "state" | "problem"> = { state: "connecting", problem: "it is starting" };
  let live: Session | undefined;
  let coming = Promise.withResolvers<void>();
  let offer: Offer = { tools: [], prompts: [], hasResources: false };
  const inSlot = createSlots(config);
  const onFault = createFaultLog(server, log);

  async function list(session: Session): Promise<void> {
    offer = await session.list();
    onOffer();
  }

  /** Connects, and resolves to the reason when the connection ends. Rejects if the connection attempt fails. */
  async function serve(): Promise<LoggableError> {
    const relisting = createNewest<{ session: Session } | undefined>(async (change) => {
      const listing = change && list(change.session);
      await listing?.catch((error: unknown) => {
        log.warn({ server, err: toProblem(error) }, "could not list a tool server's tools again");
      });
    }, undefined);
    const onChanged = (session: Session) => relisting.show({ session });
    const onError = (error: unknown) => log.debug({ server, err: toProblem(error) }, "a tool server reported an error");
    const session = await openSession({ config, onChanged, onError, onFault, tokens, connectMs, log }, closing.signal);
    const leave = () => session.end(new LoggableError("its connection is no longer needed"));
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

  function onAway(err: LoggableError, pauseMs: number): void {
    Object.assign(status, { state: "failed", problem: err.message });
    tried.resolve();
    log.warn({ server, err, pauseMs }, "a tool server is unavailable; retrying");
  }

  async function ask<T>(request: (session: Session) => Promise<T>, signal: AbortSignal, isAgain = false): Promise<T> {
    const session = live;
    if (session === undefined) {
      throw new ToolError(`The server "${server}" is unreachable at the moment. Answer without it, and say so.`);
    }
    const { promise: renewed } = coming;
    try {
      return await request(session);
    } catch (error) {
      signal.throwIfAborted();
      if (isAgain || !(await isForgotten(error, session, signal))) throw toCallError(error, session);
      session.end(toProblem(error));
      await untilAborted(renewed, untilRenewed(signal)).catch(() => signal.throwIfAborted());
    }
    return ask(request, signal, true);
  }

  const serveOnce = () => serve().then(toProblem, toProblem);
  const running = serveAgain(serveOnce, onAway, closing.signal).finally(tried.resolve);

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
    callTool(tool, args, owner, onprogress, signal) {
      const options = { timeout, maxTotalTimeout: timeout, signal, onprogress };
      return inSlot(owner, () => ask((session) => call(session, tool, args, options), signal), signal);
    },
    getPrompt: (name, args, signal) =>
      ask(({ client }) => client.getPrompt({ name, arguments: args }, { timeout, signal }), signal),
    listResources: (signal) => ask((session) => session.listResources(signal), signal),
    readResource: (uri, signal) => ask(({ client }) => client.readResource({ uri }, { timeout, signal }), signal),
    tried: tried.promise,
    async close() {
      closing.abort(new Error("The connection is no longer needed."));
      await running;
    },
  };
}

async function call(
  { client }: Session,
  tool: ListedTool,
  args: Record<string, unknown>,
  options: RequestOptions,
): Promise<CallToolResult> {
  // Pass the tool's definition, because the SDK would list all tools again without it.
  const given = { ...options, toolDefinition: tool };
  return client.callTool({ name: tool.name, arguments: args }, given).catch(toUnreadable);
}

/**
 * Restarts `serve` whenever it ends, until `signal` aborts. Pauses grow if the server fails soon after each start.
 * `onAway` gets the reason and the pause.
 */
async function serveAgain(
  serve: () => Promise<LoggableError>,
  onAway: (problem: LoggableError, pauseMs: number) => void,
  signal: AbortSignal,
): Promise<void> {
  for (let pauseMs = AGAIN_MIN_MS; ; pauseMs = Math.min(AGAIN_MAX_MS, pauseMs * 2)) {
    const startedAt = performance.now();
    const problem = await serve();
    if (signal.aborted) return;
    if (performance.now() - startedAt > STEADY_MS) pauseMs = AGAIN_MIN_MS;
    onAway(problem, pauseMs);
    const wait = pauseMs * (0.5 + Math.random() / 2);
    await sleep(wait, undefined, { signal, ref: false }).catch(() => {});
    if (signal.aborted) return;
  }
}

/**
 * Reopens the stream of change notices whenever it ends. Then lists everything again, because the server may have
 * changed something in the meantime.
 */
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
    return new LoggableError(`the stream ended: ${how}`);
  };
  await serveAgain(() => follow().catch((error) => new LoggableError(describeKind(error))), onAway, over.signal);
}

/** Limits a server's concurrent calls. A call that waits too long for a slot is not sent. */
function createSlots({ name, timeoutMs }: McpServerConfig) {
  const inTurn = createFairTurns(MAX_CALLS);
  return async <T>(owner: string, call: () => Promise<T>, signal: AbortSignal): Promise<T> => {
    const patience = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    let hasStarted = false;
    const start = () => {
      hasStarted = true;
      return call();
    };
    try {
      return await inTurn(owner, start, patience);
    } catch (error) {
      signal.throwIfAborted();
      if (hasStarted) throw error;
      throw new ToolError(`The server "${name}" is busy: not run. Answer without it, and say so.`);
    }
  };
}

/** Logs each faulty field of a server once. */
function createFaultLog(server: string, log: Logger): OnFault {
  const logged = new Set<string>();
  return (field) => {
    if (logged.has(field) || logged.size === MAX_FAULTS) return;
    logged.add(field);
    log.warn({ server, field }, "a tool server sent a field that violates the protocol: it is replaced or left out");
  };
}

function untilRenewed(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(RENEWAL_MS)]);
}

/**
 * True if the server no longer knows the session. After a restart or a cleanup, a server rejects such requests with
 * 404, or often with 400. Some servers also reject a single wrong call with 400, so a ping tests the session.
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
