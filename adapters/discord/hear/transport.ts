import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CloseCodes,
  Encoding,
  type SessionInfo,
  WebSocketShard,
  WebSocketShardEvents,
  WebSocketShardStatus,
} from "@discordjs/ws";
import {
  type APIGatewayBotInfo,
  APIVersion,
  GatewayCloseCodes,
  GatewayDispatchEvents,
  type GatewayDispatchPayload,
  GatewayIntentBits,
} from "discord.js";
import type { Logger } from "pino";
import { waitAtMost } from "../../../src/concurrency/deadlines.ts";
import { describeError, LoggableError } from "../../../src/port/errors.ts";
import { ApiError } from "../api/error.ts";
import { createRooms, type Rooms } from "../api/rooms.ts";
import { createServers } from "../api/servers.ts";
import type { LastSession } from "../options.ts";
import type { GatewayInfo, Identify } from "./identify.ts";

const READY_MS = 30_000;
const CONNECT_MS = 90_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;
/** A server that READY lists has an outage if it has not arrived this long after the others. */
const SERVERS_MS = 15_000;
/** Longest wait for the missed events of an earlier session. */
const RESUME_MS = 4_000;
/** Longest wait until Discord closes the connection. Discord never closes a dead one. */
const GOODBYE_MS = 1_000;

const NEEDED = GatewayIntentBits.Guilds | GatewayIntentBits.GuildMessages | GatewayIntentBits.DirectMessages;
const SOCKET = {
  version: APIVersion,
  encoding: Encoding.JSON,
  compression: null,
  handshakeTimeout: 10_000,
  helloTimeout: 60_000,
  readyTimeout: 15_000,
  identifyProperties: { os: process.platform, browser: "palaver", device: "palaver" },
  initialPresence: null,
  largeThreshold: null,
};

/** One of `count` parts of the bot's servers. Each shard has its own connection. */
export interface Shard {
  id: number;
  count: number;
}

export interface GatewayClient {
  readonly rooms: Rooms;
  /** Undefined before the first READY. */
  botId(): string | undefined;
  applicationId(): string | undefined;
  /** Adds a listener for all events. `rooms` has already applied an event when the listener gets it. */
  onEvent(listen: (packet: GatewayDispatchPayload) => void): void;
  /** Adds a listener that runs when a session has started and its servers have arrived. */
  onReady(listen: () => void): void;
  /**
   * Resumes the session of a dead process, reports the missed events, and ends the session. Discord does not count this
   * as a session start. Reports nothing if the session has already ended. Never rejects.
   */
  readMissed(last: LastSession, dispatch: (packet: GatewayDispatchPayload) => void): Promise<void>;
}

export interface ConnectionOptions {
  token: string;
  gateway: GatewayInfo;
  shard: Shard;
  identify: Identify;
  /** Shared by all connections. `isAsked`: request the Message Content intent; false once Discord refuses it. */
  content: { isAsked: boolean };
  attach(client: GatewayClient): void;
  /** Called with an explanation when the connection is lost and cannot be restored. */
  onFatal(reason: string): void;
  log: Logger;
}

/** One session of the bot. The library reconnects and resumes it automatically. If that fails, `onFatal` is called. */
export interface Connection {
  /** Resolves when the session is connected. Rejects with an explanation if that is hopeless or takes too long. */
  open(): Promise<void>;
  isReady(): boolean;
  /** `isResumable`: keeps the session for some minutes, because no other process receives the shard's events. */
  close(options?: { isResumable: boolean }): Promise<void>;
}

export function createConnection(options: ConnectionOptions): Connection {
  const { gateway, content, log, onFatal } = options;
  const closing = new AbortController();
  let session: Session | undefined;
  let hasContent = true;

  async function attempt(): Promise<void> {
    const info = await gateway.read();
    closing.signal.throwIfAborted();
    const waits = createWaits(options.identify);
    try {
      hasContent = content.isAsked;
      session = createSession({ ...options, info, identify: waits.identify, hasContent, onLost: lose });
      options.attach(session.client);
      await session.open(waits.tooLong, closing.signal);
    } catch (error) {
      if (closing.signal.aborted || !canGoWithout(closeCodeOf(error))) throw error;
      await attempt();
    } finally {
      waits.stop();
    }
  }

  /** Switches off the content of messages if Discord refused it. False for other codes, or for a second refusal. */
  function canGoWithout(code: number | undefined): boolean {
    if (code !== CONTENT_REFUSED || !hasContent) return false;
    if (content.isAsked) log.warn(`${CONTENT_IS_OFF} ${SWITCH_ON_CONTENT}`);
    content.isAsked = false;
    return true;
  }

  function lose(lost: Session, { code, message }: CloseError): void {
    if (!canGoWithout(code)) return onFatal(message);
    lost
      .end(CloseCodes.Normal)
      .then(open)
      .catch((error: unknown) => {
        if (!closing.signal.aborted) onFatal(describeError(error));
      });
  }

  const open = () => reach(attempt, log, closing.signal);

  return {
    open,
    isReady: () => session?.isReady() === true,
    async close({ isResumable } = { isResumable: false }) {
      closing.abort(new Error("The connection to Discord was closed."));
      await session?.end(isResumable ? CloseCodes.Resuming : CloseCodes.Normal);
    },
  };
}

interface SessionOptions extends Pick<ConnectionOptions, "token" | "shard" | "identify" | "log"> {
  info: APIGatewayBotInfo;
  /** True if the bot requests the content of messages that do not mention it. */
  hasContent: boolean;
  /** Called when Discord permanently closed a session that was open. */
  onLost(session: Session, error: CloseError): void;
}

interface Session {
  client: GatewayClient;
  /**
   * Resolves when the session is ready. Otherwise ends the session and rejects, with a `CloseError` if Discord closed
   * the session permanently.
   */
  open(tooLong: Promise<never>, signal: AbortSignal): Promise<void>;
  isReady(): boolean;
  end(code: CloseCodes): Promise<void>;
}

function createSession({ hasContent, log, onLost, ...options }: SessionOptions): Session {
  const { shard } = options;
  const intents = hasContent ? NEEDED | GatewayIntentBits.MessageContent : NEEDED;
  const library = createShard({ ...options, intents, from: null });
  const { socket, end } = library;
  const servers = createServers();
  const listeners: Array<(packet: GatewayDispatchPayload) => void> = [servers.see];
  const state = new EventEmitter<{ ready: []; closed: [error: CloseError] }>();
  let applicationId: string | undefined;
  let awaited = new Set<string>();
  let isWhole = false;
  let timer: NodeJS.Timeout | undefined;

  function dispatch(packet: GatewayDispatchPayload): void {
    for (const listen of [...listeners, countServers]) {
      try {
        listen(packet);
      } catch (error) {
        log.error({ err: error, event: packet.t }, "Could not handle a packet from Discord.");
      }
    }
  }

  function countServers({ t: type, d: data }: GatewayDispatchPayload): void {
    if (type === GatewayDispatchEvents.Ready) {
      isWhole = false;
      applicationId = data.application.id;
      awaited = new Set(data.guilds.map(({ id }) => id));
    } else {
      const isServer = type === GatewayDispatchEvents.GuildCreate || type === GatewayDispatchEvents.GuildDelete;
      if (isWhole || !isServer || !awaited.delete(data.id)) return;
    }
    clearTimeout(timer);
    if (awaited.size === 0) become();
    else timer = setTimeout(become, SERVERS_MS).unref();
  }

  function become(): void {
    isWhole = true;
    state.emit("ready");
  }

  socket.on(WebSocketShardEvents.Dispatch, ({ data }) => dispatch(data));
  socket.on(WebSocketShardEvents.Resumed, () => log.info({ shard: shard.id }, "Resumed the connection to Discord."));
  socket.on(WebSocketShardEvents.Error, ({ error }) =>
    log.warn({ err: error, shard: shard.id }, "A connection to Discord failed."),
  );
  socket.on(WebSocketShardEvents.Closed, ({ code }) => {
    if (library.isOver()) return;
    const reason = FATAL.get(code);
    if (reason !== undefined) state.emit("closed", new CloseError(code, reason));
    else log.info({ shard: shard.id, code }, "Connecting to Discord again.");
  });

  const session: Session = {
    client: {
      rooms: createRooms(servers),
      botId: servers.botId,
      applicationId: () => applicationId,
      onEvent: (listen) => void listeners.push(listen),
      onReady: (listen) => void state.on("ready", listen),
      readMissed: (last, listen) => readMissed(last, { ...options, intents }, listen),
    },
    isReady: () => isWhole && socket.status === WebSocketShardStatus.Ready,
    end(code) {
      clearTimeout(timer);
      return end(code);
    },
    async open(tooLong, signal) {
      const ready = Promise.withResolvers<void>();
      const stop = () => ready.reject(signal.reason);
      signal.addEventListener("abort", stop);
      state.once("ready", ready.resolve);
      state.once("closed", ready.reject);
      try {
        const failed = socket.connect().then(() => ready.promise);
        await Promise.race([failed, ready.promise, tooLong]);
        state.off("closed", ready.reject).on("closed", (error) => onLost(session, error));
      } catch (error) {
        await session.end(CloseCodes.Normal);
        throw error;
      } finally {
        signal.removeEventListener("abort", stop);
      }
    },
  };
  return session;
}

async function readMissed(
  last: LastSession,
  options: Omit<ShardOptions, "from">,
  dispatch: (packet: GatewayDispatchPayload) => void,
): Promise<void> {
  const { shard } = options;
  const from = {
    sessionId: last.id,
    resumeURL: last.url,
    sequence: last.sequence,
    shardId: shard.id,
    shardCount: shard.count,
  };
  const { socket, end } = createShard({ ...options, identify: () => new Promise(() => {}), from });
  const finished = Promise.withResolvers<void>();
  socket.on(WebSocketShardEvents.Dispatch, ({ data }) => dispatch(data));
  socket.on(WebSocketShardEvents.Error, () => finished.resolve());
  socket.on(WebSocketShardEvents.Closed, () => finished.resolve());
  socket.connect().then(finished.resolve, finished.resolve);
  await waitAtMost(finished.promise, RESUME_MS);
  await end(CloseCodes.Normal);
}

interface ShardOptions extends Pick<SessionOptions, "token" | "shard" | "info" | "identify"> {
  intents: number;
  /** The session to resume; null starts a new one. */
  from: SessionInfo | null;
}

/** The library's connection for one shard. It can be ended at any moment. */
function createShard({ token, shard, info, identify, intents, from }: ShardOptions) {
  const over = new AbortController();
  let session = from;
  let opening = Promise.withResolvers<void>();
  opening.resolve();

  const socket: WebSocketShard = new WebSocketShard(
    {
      options: { ...SOCKET, token, intents, gatewayInformation: info, shardCount: shard.count },
      // The library calls this before it opens a socket. After `end`, the call never returns, so no socket opens.
      retrieveSessionInfo() {
        if (over.signal.aborted) return new Promise(() => {});
        if (socket.status === WebSocketShardStatus.Idle) opening = Promise.withResolvers();
        return session;
      },
      updateSessionInfo: (_, next) => void (session = next),
      waitForIdentify: (id, signal) => identify(id, AbortSignal.any([signal, over.signal])),
    },
    shard.id,
  );
  socket.on(WebSocketShardEvents.Hello, () => opening.resolve());
  socket.on(WebSocketShardEvents.Closed, () => opening.resolve());

  return {
    socket,
    isOver: () => over.signal.aborted,
    /** Resolves when the session has ended, or after `GOODBYE_MS`. */
    async end(code: CloseCodes): Promise<void> {
      over.abort(new Error("The connection to Discord was closed."));
      // Waits until the socket is open. `destroy` removes the error listener, and then a failure to open would end the
      // process.
      const ending = opening.promise.then(() => socket.destroy({ code }));
      await waitAtMost(ending, GOODBYE_MS);
    },
  };
}

/** Retries until Discord responds. Rejects with an explanation if that is hopeless or takes too long. */
export async function reach<T>(attempt: () => Promise<T>, log: Logger, signal: AbortSignal): Promise<T> {
  const deadline = performance.now() + CONNECT_MS;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      const code = closeCodeOf(error);
      if (code !== undefined) throw new Error(FATAL.get(code) ?? describeError(error), { cause: error });
      if (performance.now() + pauseMs > deadline) {
        throw new LoggableError("Discord cannot be reached", { quote: `: ${describeError(error)}`, cause: error });
      }
      log.warn({ err: error }, "Discord cannot be reached; trying again.");
      await sleep(pauseMs, undefined, { signal });
    }
  }
}

/** A time limit for starting a session. Waiting for permission to identify does not count. */
interface Waits {
  identify: Identify;
  readonly tooLong: Promise<never>;
  stop(): void;
}

function createWaits(identify: Identify): Waits {
  const tooLong = Promise.withResolvers<never>();
  tooLong.promise.catch(() => {});
  const giveUp = () => tooLong.reject(new LoggableError("The Discord connection wasn't ready in time."));
  let timer = setTimeout(giveUp, READY_MS);
  let isStopped = false;
  return {
    async identify(shard, signal) {
      clearTimeout(timer);
      await identify(shard, signal);
      if (!isStopped) timer = setTimeout(giveUp, READY_MS);
    },
    tooLong: tooLong.promise,
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/** Discord closes a connection with this code if it refuses an intent. It can refuse only Message Content. */
const CONTENT_REFUSED: number = GatewayCloseCodes.DisallowedIntents;

export const CONTENT_IS_OFF =
  "The Message Content intent is switched off for this bot, so it sees only messages that mention it, direct messages and commands.";
export const SWITCH_ON_CONTENT =
  "To let the bot answer replies, and messages in threads that don't mention it, switch the intent on in the Discord Developer Portal under Bot, Privileged Gateway Intents. Then restart Palaver.";

/** Explains both a closed connection and a refused call. */
export const TOKEN_REFUSED =
  "Discord does not accept the token. Copy the bot's token from the Discord Developer Portal, under Bot, and restart Palaver.";

const FATAL: ReadonlyMap<number, string> = new Map<number, string>([
  [GatewayCloseCodes.AuthenticationFailed, TOKEN_REFUSED],
  [GatewayCloseCodes.InvalidShard, "Discord does not accept this process's SHARDS and SHARD_COUNT."],
  [GatewayCloseCodes.ShardingRequired, "The bot is in too many servers for its number of shards."],
  [GatewayCloseCodes.InvalidAPIVersion, "Discord no longer supports the gateway version that Palaver uses."],
  [GatewayCloseCodes.InvalidIntents, "Discord does not know an intent that Palaver requests."],
  [GatewayCloseCodes.DisallowedIntents, "Discord does not grant this bot an intent that it needs."],
]);

/** Discord closed the connection, and the session cannot be resumed. */
class CloseError extends Error {
  override readonly name = "CloseError";
  readonly code: number;

  constructor(code: number, reason: string) {
    super(reason);
    this.code = code;
  }
}

/** The code with which the connection was closed. Discord can refuse a token before there is a connection. */
function closeCodeOf(error: unknown): number | undefined {
  if (error instanceof CloseError) return error.code;
  const isRefused = error instanceof ApiError && error.status === 401 && !error.isForeign;
  return isRefused ? GatewayCloseCodes.AuthenticationFailed : undefined;
}
