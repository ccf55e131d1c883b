import { onTestFinished } from "vitest";
import { silent } from "../../lab/support/log.ts";
import type { ChatCompletionChunk } from "../../src/gateway/chunks.ts";
import {
  type CallOptions,
  createGateway,
  type Gateway,
  type GatewayOptions,
  type StreamOptions,
} from "../../src/gateway/client.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
import type { ChatRequest } from "../../src/gateway/request.ts";

/** Looks like no known kind of key, so that only the client that has this key can recognize it. */
export const KEY = "canary.5f2a9c.word";

export function connect(baseUrl: string, options: Partial<GatewayOptions> = {}): Gateway {
  const { limits, ...rest } = options;
  const gateway = createGateway({
    baseUrl,
    apiKey: KEY,
    log: silent,
    limits: { backoffMinMs: 1, backoffMaxMs: 5, ...limits },
    ...rest,
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

export const request: ChatRequest = { model: "m", messages: [{ role: "user", content: "hello" }] };

export const open: AbortSignal = new AbortController().signal;

export interface Reading {
  chunks: ChatCompletionChunk[];
  text: string;
  /** Undefined if the answer was complete. */
  error: unknown;
}

export const ignoring: StreamOptions = { onChunk() {} };

export async function readAnswer(
  gateway: Pick<Gateway, "streamChat">,
  asked: ChatRequest,
  signal: AbortSignal,
  options: CallOptions = {},
): Promise<Reading> {
  const chunks: ChatCompletionChunk[] = [];
  const error: unknown = await gateway
    .streamChat(asked, signal, { ...options, onChunk: (chunk) => chunks.push(chunk) })
    .catch((thrown: unknown) => thrown);
  const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
  return { chunks, text, error };
}

export function beginAnswer(
  gateway: Pick<Gateway, "streamChat">,
  asked: ChatRequest,
  signal: AbortSignal,
): { first: Promise<ChatCompletionChunk>; end: Promise<void> } {
  const { promise: first, resolve: onChunk } = Promise.withResolvers<ChatCompletionChunk>();
  return { first, end: gateway.streamChat(asked, signal, { onChunk }) };
}

/** Resolves to the reason of a rejection, which must be a GatewayError. */
export async function failureOf(promise: Promise<unknown>): Promise<GatewayError> {
  const failure: unknown = await promise.then(
    () => new Error("it did not reject"),
    (error: unknown) => error,
  );
  if (failure instanceof GatewayError) return failure;
  throw failure;
}
