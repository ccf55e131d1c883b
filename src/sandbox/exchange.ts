import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import { type Fault, raiseFault, readFault } from "./faults.ts";
import type { CountRequest } from "./rate-limit.ts";
import type { CountTake } from "./takes.ts";

/** The gateway's own count of what it has given, as it would bill it. */
export interface Served {
  /** Accepted requests; refused ones do not count. */
  requests: number;
  promptTokens: number;
  /** For a caller who left, the tokens sent until then. */
  completionTokens: number;
  pictures: number;
  /** Requests whose callers left before their end. */
  left: number;
}

export interface SandboxContext {
  log: Logger;
  countRequest: CountRequest;
  /** Speed where the user's words ask for none. */
  tokensPerSecond: number;
  /** Origins whose files may be fetched although their address is private. */
  trustedFileOrigins: readonly string[];
  /** Whether the first answer of a conversation says that its text is made up. */
  isPractice: boolean;
  /** Like requests of which the first one has met its `-once` fault. */
  metOnce: Set<string>;
  countTake: CountTake;
  served: Served;
}

/** One request and its response. `signal` aborts when the caller leaves or the server closes. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  /** The captures of the route's pattern, decoded. */
  parameters: readonly string[];
  signal: AbortSignal;
  context: SandboxContext;
}

/** Answers, or throws an `ApiError` before the head of the response was sent. */
export type Handler = (exchange: Exchange) => Promise<void>;

export function sendJson(response: ServerResponse, body: unknown): void {
  response.setHeader("content-type", "application/json; charset=utf-8");
  response.end(JSON.stringify(body));
}

/** A model id and what was asked of it behind colons: `sandbox-chat:stall=5:speed=20`. */
export interface AskedModel {
  id: string;
  fault: Fault | undefined;
  tokensPerSecond: number | undefined;
}

const SPEED = /^speed=(\d{1,6})$/;

/** Reads a model id with its suffixes. The header `x-sandbox-fault` asks for a fault without touching the id. */
export function readAskedModel(text: string, request: IncomingMessage, param: string | null): AskedModel {
  const [id = "", ...suffixes] = text.split(":");
  const speed = suffixes.map((suffix) => SPEED.exec(suffix)?.[1]).find((value) => value !== undefined);
  const faultText = suffixes.find((suffix) => !SPEED.test(suffix));
  const header = request.headersDistinct["x-sandbox-fault"]?.[0];
  return {
    id,
    fault: header ? readFault(header, null) : faultText === undefined ? undefined : readFault(faultText, param),
    tokensPerSecond: speed === undefined ? undefined : Math.max(1, Number(speed)),
  };
}

const MAX_REMEMBERED = 1000;

/** Throws the fault this request meets, or returns one inside the answer. `-once` spares the second of two alike. */
export function meetFault(
  fault: Fault | undefined,
  model: string,
  fingerprint: string,
  context: SandboxContext,
): Fault | undefined {
  if (fault === undefined) return undefined;
  if (fault.isOnce) {
    const kind = `${fault.name} ${fingerprint}`;
    // Forgotten with the second request, so that the same demonstration works again.
    if (context.metOnce.delete(kind)) return undefined;
    if (context.metOnce.size >= MAX_REMEMBERED) context.metOnce.clear();
    context.metOnce.add(kind);
  }
  raiseFault(fault, model);
  return fault;
}
