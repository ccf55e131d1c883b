import { setTimeout as sleep } from "node:timers/promises";
import {
  type Client,
  CloseCodes,
  DiscordAPIError,
  DiscordjsErrorCodes,
  Events,
  GatewayCloseCodes,
  Status,
} from "discord.js";
import type { Logger } from "pino";
import { describeError, LoggableError } from "../../../src/port/errors.ts";
import { createGatewayClient, discard, type GatewayClientOptions } from "./client.ts";
import type { Identify } from "./identify.ts";

const READY_MS = 30_000;
const CONNECT_MS = 90_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;

export interface ConnectionOptions extends Omit<GatewayClientOptions, "hasContent" | "closeCode"> {
  token: string;
  /** Shared by all connections: the Message Content intent is asked for until Discord refuses it to one of them. */
  content: { isAsked: boolean };
  /** Gives a client its listeners, before it connects. */
  attach(client: Client): void;
  /** The connection is lost for good, with the reason in plain words. */
  onFatal(reason: string): void;
}

/** One session of the bot. The library reconnects and resumes by itself; a loss that it cannot repair is fatal. */
export interface Connection {
  /** Resolves when it is connected. Rejects in plain words when that is hopeless, or takes too long. */
  open(): Promise<void>;
  isReady(): boolean;
  /** `isResumable`: nobody else hears its shard, so Discord is to keep for some minutes what it would have told. */
  close(options?: { isResumable: boolean }): Promise<void>;
}

export function createConnection(options: ConnectionOptions): Connection {
  const { content, log, onFatal } = options;
  const closing = new AbortController();
  let client: Client | undefined;
  let hasContent = true;
  let closeCode = CloseCodes.Normal;

  async function attempt(): Promise<void> {
    try {
      hasContent = content.isAsked;
      const waits = createWaits(options.identify);
      client = createGatewayClient({ ...options, identify: waits.identify, hasContent, closeCode: () => closeCode });
      options.attach(client);
      await connect(client, { token: options.token, waits, onLost: lose }, closing.signal);
    } catch (error) {
      if (closing.signal.aborted || !canGoWithout(closeCodeOf(error))) throw error;
      await attempt();
    }
  }

  /** Gives up the content of messages, where that was refused; false where there is nothing left to give up. */
  function canGoWithout(code: number | undefined): boolean {
    if (code !== CONTENT_REFUSED || !hasContent) return false;
    if (content.isAsked) log.warn(`${CONTENT_IS_OFF} ${SWITCH_ON_CONTENT}`);
    content.isAsked = false;
    return true;
  }

  /** A connection that stood was closed for good. */
  function lose(lost: Client, code: number): void {
    if (!canGoWithout(code)) return onFatal(describeClose(code) ?? `Discord closed the connection for good (${code}).`);
    discard(lost)
      .then(open)
      .catch((error: unknown) => {
        if (!closing.signal.aborted) onFatal(describeError(error));
      });
  }

  const open = () => reach(attempt, log, closing.signal);

  return {
    open,
    isReady() {
      if (client?.isReady() !== true) return false;
      return client.ws.shards.every((shard) => shard.status === Status.Ready);
    },
    async close({ isResumable } = { isResumable: false }) {
      if (isResumable) closeCode = CloseCodes.Resuming;
      closing.abort(new Error("The connection to Discord was closed."));
      if (client !== undefined) await discard(client);
    },
  };
}

/** Tries until Discord is reached. Rejects in plain words where that is hopeless, or takes too long. */
export async function reach<T>(attempt: () => Promise<T>, log: Logger, signal: AbortSignal): Promise<T> {
  const deadline = performance.now() + CONNECT_MS;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      const code = closeCodeOf(error);
      if (code !== undefined) throw new Error(describeClose(code) ?? describeError(error), { cause: error });
      if (performance.now() + pauseMs > deadline) {
        throw new LoggableError("Discord cannot be reached", { quote: `: ${describeError(error)}`, cause: error });
      }
      log.warn({ err: error }, "Discord could not be reached; trying again.");
      await sleep(pauseMs, undefined, { signal });
    }
  }
}

/** A deadline for Discord to get a client ready. The client's own waits for its turn to identify do not count. */
interface Waits {
  identify: Identify;
  /** Rejects when Discord has taken too long. */
  readonly tooLong: Promise<never>;
  stop(): void;
}

function createWaits(identify: Identify): Waits {
  const tooLong = Promise.withResolvers<never>();
  tooLong.promise.catch(() => {});
  const giveUp = () => tooLong.reject(new LoggableError("Discord did not say in time that it is ready."));
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

interface ConnectOptions {
  token: string;
  waits: Waits;
  /** Discord closed it for good, later. */
  onLost(client: Client, code: number): void;
}

/**
 * Connects a client. Rejects with a `CloseError` where Discord closes it for good, and with `signal.reason`: the library
 * goes on asking, but nobody waits for it.
 */
async function connect(client: Client, { token, waits, onLost }: ConnectOptions, signal: AbortSignal): Promise<void> {
  const ready = Promise.withResolvers<void>();
  let isOpen = false;
  let closedWith: number | undefined;
  client.once(Events.ClientReady, () => ready.resolve());
  client.on(Events.ShardDisconnect, ({ code }) => {
    closedWith = code;
    if (isOpen) onLost(client, code);
    else ready.reject(new CloseError(code));
  });
  const stop = () => ready.reject(signal.reason);
  signal.addEventListener("abort", stop);
  try {
    await Promise.race([client.login(token).then(() => ready.promise), ready.promise, waits.tooLong]);
    isOpen = true;
  } catch (error) {
    await discard(client);
    throw closedWith === undefined ? error : new CloseError(closedWith);
  } finally {
    waits.stop();
    signal.removeEventListener("abort", stop);
  }
}

/** Discord refused an intent, and the Message Content intent is the only one that it may refuse. */
const CONTENT_REFUSED: number = GatewayCloseCodes.DisallowedIntents;

export const CONTENT_IS_OFF =
  "The Message Content intent is switched off for this bot, so it is told only what mentions it, what is sent to it directly, and commands.";
export const SWITCH_ON_CONTENT =
  "For answers to replies and in threads without a mention, switch it on in the Discord Developer Portal, under Bot, Privileged Gateway Intents, and start again.";

/** For a closed connection and for a refused call alike. */
export const TOKEN_REFUSED =
  "Discord does not accept the token. Copy the bot's token from the Discord Developer Portal, under Bot, and start again.";

/** Closes after which trying again changes nothing. */
const FATAL: ReadonlyMap<number, string> = new Map<number, string>([
  [GatewayCloseCodes.AuthenticationFailed, TOKEN_REFUSED],
  [GatewayCloseCodes.InvalidShard, "Discord does not accept the shards that this process was told to run."],
  [GatewayCloseCodes.ShardingRequired, "The bot is in so many servers that it needs more shards than it runs."],
  [
    GatewayCloseCodes.InvalidAPIVersion,
    "Discord no longer offers the version of its gateway that this program speaks.",
  ],
  [GatewayCloseCodes.InvalidIntents, "Discord does not know an intent that this program asks for."],
  [GatewayCloseCodes.DisallowedIntents, "Discord does not allow this bot an intent that it needs."],
]);

/** Discord closed the connection and will not take it up again. */
class CloseError extends Error {
  override readonly name = "CloseError";
  readonly code: number;

  constructor(code: number) {
    super(describeClose(code) ?? `Discord closed the connection with ${code}.`);
    this.code = code;
  }
}

/** In plain words why the connection ended for good; undefined when it did not. */
function describeClose(code: number): string | undefined {
  return FATAL.get(code);
}

/** The code of a close; a refused token is found out before anything is connected. */
function closeCodeOf(error: unknown): number | undefined {
  if (error instanceof CloseError) return error.code;
  if (error instanceof DiscordAPIError && error.status === 401) return GatewayCloseCodes.AuthenticationFailed;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === DiscordjsErrorCodes.TokenInvalid ? GatewayCloseCodes.AuthenticationFailed : undefined;
}
