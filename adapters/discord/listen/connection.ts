import { setTimeout as sleep } from "node:timers/promises";
import { type Client, DiscordjsErrorCodes, Events, GatewayCloseCodes, Status } from "discord.js";
import { LoggableError } from "../../../src/port/errors.ts";
import { createGatewayClient, discard, type GatewayClientOptions } from "./client.ts";

const READY_MS = 30_000;
const CONNECT_MS = 90_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;

export interface ConnectionOptions extends Omit<GatewayClientOptions, "hasContent"> {
  token: string;
  /** Gives a client its listeners, before it connects. */
  attach(client: Client): void;
  /** The connection is lost for good, with the reason in plain words. */
  onFatal(reason: string): void;
}

/** The gateway's side of the bot. The library reconnects and resumes by itself; what it cannot repair ends here. */
export interface Connection {
  /** Resolves when everything is connected. Rejects in plain words when that is hopeless, or takes too long. */
  open(): Promise<void>;
  isReady(): boolean;
  close(): Promise<void>;
}

export function createConnection(options: ConnectionOptions): Connection {
  const { log, onFatal } = options;
  const closing = new AbortController();
  let client: Client | undefined;
  let hasContent = true;

  async function tryOnce(): Promise<void> {
    client = createGatewayClient({ ...options, hasContent });
    options.attach(client);
    await connect(client, options.token, lose, closing.signal);
  }

  /** Gives up the content of messages, where that was refused; false where there is nothing left to give up. */
  function canGoWithout(code: number | undefined): boolean {
    if (code !== CONTENT_REFUSED || !hasContent) return false;
    hasContent = false;
    log.warn(`${CONTENT_IS_OFF} ${SWITCH_ON_CONTENT}`);
    return true;
  }

  /** A connection that stood was closed for good. */
  function lose(lost: Client, code: number): void {
    if (!canGoWithout(code)) return onFatal(describeClose(code) ?? `Discord closed the connection for good (${code}).`);
    discard(lost)
      .then(open)
      .catch((error: unknown) => {
        if (!closing.signal.aborted) onFatal(describe(error));
      });
  }

  async function open(): Promise<void> {
    const deadline = performance.now() + CONNECT_MS;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      closing.signal.throwIfAborted();
      try {
        return await tryOnce();
      } catch (error) {
        closing.signal.throwIfAborted();
        const code = closeCodeOf(error);
        if (canGoWithout(code)) continue;
        if (code !== undefined) throw new Error(describeClose(code) ?? describe(error), { cause: error });
        if (performance.now() + pauseMs > deadline) {
          throw new LoggableError("Discord cannot be reached", { quote: `: ${describe(error)}`, cause: error });
        }
        log.warn({ err: error }, "Discord could not be reached; trying again.");
        await sleep(pauseMs, undefined, { signal: closing.signal });
      }
    }
  }

  return {
    open,
    isReady() {
      if (client?.isReady() !== true) return false;
      return client.ws.shards.every((shard) => shard.status === Status.Ready);
    },
    async close() {
      closing.abort(new Error("The connection to Discord was closed."));
      if (client !== undefined) await discard(client);
    },
  };
}

/**
 * Connects a client. Rejects with a `CloseError` where Discord closes it for good, which later is told to `onLost`, and
 * with `signal.reason`: the library goes on asking, but nobody waits for it.
 */
async function connect(
  client: Client,
  token: string,
  onLost: (client: Client, code: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const ready = Promise.withResolvers<void>();
  let isOpen = false;
  let closedWith: number | undefined;
  client.once(Events.ClientReady, () => ready.resolve());
  client.on(Events.ShardDisconnect, ({ code }) => {
    closedWith = code;
    if (isOpen) onLost(client, code);
    else ready.reject(new CloseError(code));
  });
  const timer = setTimeout(
    () => ready.reject(new LoggableError("Discord did not say in time that it is ready.")),
    READY_MS,
  );
  const stop = () => ready.reject(signal.reason);
  signal.addEventListener("abort", stop);
  try {
    await Promise.race([client.login(token).then(() => ready.promise), ready.promise]);
    isOpen = true;
  } catch (error) {
    await discard(client);
    throw closedWith === undefined ? error : new CloseError(closedWith);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The only intent that Discord may refuse was refused. */
const CONTENT_REFUSED: number = GatewayCloseCodes.DisallowedIntents;

export const CONTENT_IS_OFF =
  "The Message Content intent is switched off for this bot, so it is told only what mentions it, what is sent to it directly, and commands.";
export const SWITCH_ON_CONTENT =
  "For answers to replies and in threads without a mention, switch it on in the Discord Developer Portal, under Bot, Privileged Gateway Intents, and start again.";

/** The same of a connection that is closed and of a call that is refused. */
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
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === DiscordjsErrorCodes.TokenInvalid ? GatewayCloseCodes.AuthenticationFailed : undefined;
}
