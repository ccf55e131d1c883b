import { onTestFinished } from "vitest";
import type { ChatCompletionChunk, ChatRequest } from "../../src/gateway/chunks.ts";
import { createGateway, type Gateway, type GatewayOptions } from "../../src/gateway/client.ts";
import { GatewayError } from "../../src/gateway/errors.ts";
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

/** Reads an answer to its end, whatever that is. */
export async function readAnswer(answer: AsyncIterable<ChatCompletionChunk>): Promise<Reading> {
  const chunks: ChatCompletionChunk[] = [];
  let error: unknown;
  try {
    for await (const chunk of answer) chunks.push(chunk);
  } catch (thrown) {
    error = thrown;
  }
  const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
  return { chunks, text, error };
}

/** What a promise rejects with, which must be a GatewayError. */
export async function failureOf(promise: Promise<unknown>): Promise<GatewayError> {
  const failure: unknown = await promise.then(
    () => new Error("it did not reject"),
    (error: unknown) => error,
  );
  if (failure instanceof GatewayError) return failure;
  throw failure;
}
