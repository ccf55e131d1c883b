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
/** A server that lives as long has begun well: the next pause is the shortest again. */
const STEADY_MS = 60_000;
/** Longest that a call waits for a new session where the server has forgotten the one it was made in. */
const RENEWAL_MS = 10_000;
/** A server that gets more fields wrong is not worth more lines in the log. */
const MAX_FAULTS = 50;
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
 * A server, reconnected as long as it is wanted. A `ToolError` is the server's answer, or says that it was not asked;
 * after any other error it is unknown whether the call was done.
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
    tool: ListedTool,
    args: Record<string, unknown>,
    owner: string,
    onProgress: OnProgress,
    signal: AbortSignal,
  ): Promise<CallToolResult>;
  getPrompt(name: string, args: Record<string, string>, signal: AbortSignal): Promise<GetPromptResult>;
  listResources(signal: AbortSignal): Promise<Resource[]>;
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
  const { toProblem, toCallError } = createFailures(config);
  const status: Pick<McpConnection, "state" | "problem"> = { state: "connecting", problem: "it is being started" };
  let live: Session | undefined;
  let coming = Promise.withResolvers<void>();
  let offer: Offer = { tools: [], prompts: [], hasResources: false };
  const inPlace = createPlaces(config);
  const onFault = createFaultLog(server, log);

  async function list(session: Session): Promise<void> {
    offer = await session.list();
    onOffer();
  }

  /** Connects, and resolves to why the connection has ended. Rejects when there was none. */
  async function serve(): Promise<LoggableError> {
    const relisting = createNewest<{ session: Session } | undefined>(async (change) => {
      const listing = change && list(change.session);
      await listing?.catch((error: unknown) => {
        log.warn({ server, err: toProblem(error) }, "the tools of a server could not be listed again");
      });
    }, undefined);
    const onChanged = (session: Session) => relisting.show({ session });
    const onError = (error: unknown) => log.debug({ server, err: toProblem(error) }, "a tool server: error");
    const session = await openSession({ config, onChanged, onError, onFault, tokens, log }, closing.signal);
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

  function onAway(err: LoggableError, pauseMs: number): void {
    Object.assign(status, { state: "failed", problem: err.message });
    tried.resolve();
    log.warn({ server, err, pauseMs }, "a tool server is away and is tried again");
  }

  async function ask<T>(request: (session: Session) => Promise<T>, signal: AbortSignal, isAgain = false): Promise<T> {
    const session = live;
    if (session === undefined) {
      throw new ToolError(`The server "${server}" cannot be reached now. Answer without it, and say so.`);
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
      return inPlace(owner, () => ask((session) => call(session, tool, args, options), signal), signal);
    },
    getPrompt: (name, args, signal) =>
      ask(({ client }) => client.getPrompt({ name, arguments: args }, { timeout, signal }), signal),
    listResources: (signal) => ask((session) => session.listResources(signal), signal),
    readResource: (uri, signal) => ask(({ client }) => client.readResource({ uri }, { timeout, signal }), signal),
    tried: tried.promise,
    async close() {
      closing.abort(new Error("It is not wanted any more."));
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
  // If the SDK had no definition of the tool, it would list all tools again.
  const given = { ...options, toolDefinition: tool };
  return client.callTool({ name: tool.name, arguments: args }, given).catch(toUnreadable);
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

/** Logs each field that a server gets wrong once. */
function createFaultLog(server: string, log: Logger): OnFault {
  const told = new Set<string>();
  return (field) => {
    if (told.has(field) || told.size === MAX_FAULTS) return;
    told.add(field);
    log.warn(
      { server, field },
      "a tool server sends a field that does not fit the protocol: it is replaced or left out",
    );
  };
}

function untilRenewed(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(RENEWAL_MS)]);
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
