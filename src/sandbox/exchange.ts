import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { CountRequest } from "./access.ts";
import type { Faults } from "./faults.ts";

/** The gateway's own count of what it sent, as for a bill. */
export interface Served {
  requests: number;
  promptTokens: number;
  /** Includes completion tokens that callers received before they disconnected. */
  completionTokens: number;
  pictures: number;
  /** The number of requests whose callers disconnected before the end of the answer. */
  left: number;
}

export interface SandboxContext {
  log: Logger;
  countRequest: CountRequest;
  /** The speed of answers, unless the user's words request another. */
  tokensPerSecond: number;
  /** Origins with private addresses from which the sandbox can fetch files. */
  trustedFileOrigins: readonly string[];
  /** True if the first answer in a conversation says that its text is made up. */
  isPractice: boolean;
  faults: Faults;
  /** Requests that have had their `-once` fault and have not been repeated yet. */
  metOnce: Set<string>;
  served: Served;
}

/** One request and its response. `signal` aborts when the caller disconnects or the server closes. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  /** The decoded captures of the route's pattern. */
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
