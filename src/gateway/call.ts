import type { Logger } from "pino";
import type { GatewayLimits } from "./limits.ts";
import { type CallOptions, runAttempts, type StartAttempts } from "./retry.ts";
import type { SafeText } from "./safe-text.ts";
import { type GatewayCall, readBody, type Send, type Transport } from "./transport.ts";
import { createWatch } from "./watch.ts";

/** What every call of one gateway shares. */
export interface CallDeps {
  transport: Transport;
  retry: StartAttempts;
  limits: GatewayLimits;
  safe: SafeText;
  log: Logger;
}

/** A call whose answer is one JSON document. */
export interface Question<T> {
  call: GatewayCall;
  maxBytes: number;
  send: Send;
  /** Throws a GatewayError when the document is not what was asked for. */
  read: (json: string) => T | Promise<T>;
}

/** Asks until there is an answer or no further attempt to make. */
export function ask<T>(
  { retry }: CallDeps,
  { call, maxBytes, send, read }: Question<T>,
  signal: AbortSignal,
  options: CallOptions,
): Promise<T> {
  const attempts = retry(call.model ?? "", options);

  async function attempt(): Promise<T> {
    const watch = createWatch(signal, attempts.remainingMs());
    try {
      return await read(await readBody(await send(call, watch), maxBytes, watch));
    } finally {
      watch.end();
    }
  }
  return runAttempts(attempts, attempt, signal);
}
