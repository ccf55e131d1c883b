import { onTestFinished } from "vitest";
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
import { silent } from "./log.ts";

/** Looks like no key in particular, so that only the client that was given it can know it again. */
export const KEY = "canary.5f2a9c.word";

/** A client of a test server, with waits that are short where a test waits for them. */
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

/** Never aborts. */
export const open: AbortSignal = new AbortController().signal;

export interface Reading {
  chunks: ChatCompletionChunk[];
  text: string;
  /** undefined when the answer was complete. */
  error: unknown;
}

/** Takes chunks and does nothing with them. */
export const ignoring: StreamOptions = { onChunk() {} };

/** Reads an answer to its end, whatever that is. */
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

/** Begins to read an answer: its first chunk, and how it ends. */
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
