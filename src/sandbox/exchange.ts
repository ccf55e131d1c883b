import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { CountRequest } from "./access.ts";
import type { Faults } from "./faults.ts";

/** The gateway's own count of its answers, like the count for a bill. */
export interface Served {
  /** The number of accepted requests. */
  requests: number;
  promptTokens: number;
  /** Includes the tokens that callers received before they disconnected. */
  completionTokens: number;
  pictures: number;
  /** The number of requests whose callers disconnected before the end of the answer. */
  left: number;
}

export interface SandboxContext {
  log: Logger;
  countRequest: CountRequest;
  /** The speed if the user's words request none. */
  tokensPerSecond: number;
  /** Origins with private addresses from which the sandbox can fetch files. */
  trustedFileOrigins: readonly string[];
  /** True if the first answer in a conversation says that its text is made up. */
  isPractice: boolean;
  /** The faults that a request can ask for. */
  faults: Faults;
  /** Requests with a `-once` fault that had their fault and were not repeated yet. */
  metOnce: Set<string>;
  served: Served;
}

/** One request and its response. `signal` aborts when the caller disconnects or the server closes. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  /** The captures of the route's pattern, decoded. */
  parameters: readonly string[];
  signal: AbortSignal;
  context: SandboxContext;
}

/** Answers, or throws an `ApiError` before it sends the head of the response. */
export type Handler = (exchange: Exchange) => Promise<void>;

export function sendJson(response: ServerResponse, body: unknown): void {
  response.setHeader("content-type", "application/json; charset=utf-8");
  response.end(JSON.stringify(body));
}
