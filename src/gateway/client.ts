import type { Logger } from "pino";
import type { PauseBoard } from "./breaker.ts";
import { createStreamChat } from "./chat.ts";
import { GatewayError } from "./errors.ts";
import type { ExtraBody } from "./extra-body.ts";
import { hasError, isRecord, parseJson, toStreamError } from "./failures.ts";
import { createGenerateImage, type GeneratedImage, type ImageRequest } from "./images.ts";
import { DEFAULT_LIMITS, type GatewayLimits } from "./limits.ts";
import { ask, type CallDeps, type CallOptions, createRetry, type Question } from "./retry.ts";
import { createSafeText, type SafeText } from "./safe-text.ts";
import type { OnChunk } from "./stream-decoder.ts";
import { createTransport } from "./transport.ts";
import type { ChatRequest } from "./validate.ts";

export type { GatewayLimits } from "./limits.ts";
export type { CallOptions, Detour, RetryNotice } from "./retry.ts";

export interface StreamOptions extends CallOptions {
  /** Takes what comes without waiting for anything: a promise for each of thousands of chunks would cost too much. */
  onChunk: OnChunk;
}

/**
 * Every method rejects with a GatewayError, or with the signal's reason when the signal aborts. Failures that
 * pass are tried again before that, as long as nothing of the answer has come. What `beforeSend` rejects with is passed on.
 */
export interface Gateway {
  /**
   * Hands chunks over as they come. Resolves when the answer is complete: after a finish_reason or `[DONE]`. Rejects
   * otherwise, and with what `onChunk` throws. Aborting closes the connection within a second. Before the first text or
   * tool call, chunks of a failed attempt may precede those of the next.
   */
  streamChat(request: ChatRequest, signal: AbortSignal, options: StreamOptions): Promise<void>;
  /** Ids of the models that the key may use. */
  listModels(signal: AbortSignal, options?: CallOptions): Promise<string[]>;
  /** Rejects as `rejected` also when the model declines to draw; the message then quotes its reason. */
  generateImage(request: ImageRequest, signal: AbortSignal, options?: CallOptions): Promise<GeneratedImage>;
  /** Ends every running call. */
  close(): Promise<void>;
}

export interface GatewayOptions {
  /** With or without a slash or `/v1` at its end. */
  baseUrl: string;
  apiKey: string;
  /** Header that carries the key on the image endpoint where a Bearer is answered with 401. */
  imageKeyHeader?: string;
  /** Fields beyond the interface; absent: none are sent. */
  extraBody?: ExtraBody;
  log: Logger;
  limits?: Partial<GatewayLimits>;
  /** Shares pauses that models ask for with other processes. */
  pauses?: PauseBoard;
  /** Told how many models are left alone, whenever that changes. */
  onPaused?: (count: number) => void;
}

/** Throws a `rejected` GatewayError when an option cannot be used. */
export function createGateway({ baseUrl, apiKey, imageKeyHeader, log, ...options }: GatewayOptions): Gateway {
  const { limits: given, extraBody = { all: {}, models: new Map() }, pauses, onPaused } = options;
  checkHeader(apiKey, imageKeyHeader);
  const limits = { ...DEFAULT_LIMITS, ...given };
  const safe = createSafeText([apiKey]);
  const transport = createTransport({ baseUrl: readBaseUrl(baseUrl), apiKey, limits, safe });
  const deps: CallDeps = { transport, retry: createRetry(limits, { board: pauses, onPaused }), limits, safe, log };
  const streamChat = createStreamChat(deps, extraBody);
  const generateImage = createGenerateImage(deps, imageKeyHeader);

  return {
    streamChat: (request, signal, { onChunk, ...options }) => streamChat(request, signal, onChunk, options),
    generateImage: (request, signal, options = {}) => generateImage(request, signal, options),
    async listModels(signal, options = {}) {
      const question: Question<string[]> = {
        call: { method: "GET", path: "/v1/models" },
        maxBytes: limits.maxBodyBytes,
        send: transport.send,
        read: (json) => parseModelIds(json, safe),
      };
      return ask(deps, question, signal, options);
    },
    close: () => transport.close(),
  };
}

/** Both are sent as headers, where a line break would be an attack and anything odd an error without a name. */
function checkHeader(apiKey: string, imageKeyHeader: string | undefined): void {
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new GatewayError("rejected", "The gateway's key must be one word of plain ASCII characters.");
  }
  if (imageKeyHeader !== undefined && !/^x-[a-z0-9-]+$/i.test(imageKeyHeader)) {
    throw new GatewayError("rejected", "The image key header must be the name of an x- header, like x-vendor-api-key.");
  }
}

/** The base without a trailing slash or version. Throws a `rejected` GatewayError unless it is a plain http(s) URL. */
export function readBaseUrl(text: string): string {
  const url = URL.parse(text.trim());
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new GatewayError("rejected", "The gateway's base address must be an http:// or https:// URL.");
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new GatewayError(
      "rejected",
      "The gateway's base address must have no user, password, query or fragment; the key is set on its own.",
    );
  }
  const path = url.pathname.replace(/\/+$/, "").replace(/\/v1(?:beta)?$/, "");
  return `${url.origin}${path.replace(/\/+$/, "")}`;
}

/** Model ids of `{data: […]}`, `{models: […]}` or a bare list, of ids or of objects with `id`, `name` or `model`. */
export function parseModelIds(json: string, safe: SafeText): string[] {
  const value = parseJson(json);
  if (hasError(value)) throw toStreamError(value, safe);
  const list: unknown = isRecord(value) ? (value.data ?? value.models) : value;
  if (!Array.isArray(list)) {
    throw new GatewayError(
      "malformed",
      "The gateway's model list is not a list: check that its base address is right.",
    );
  }
  const ids = list.map(readId).filter((id) => id !== "");
  return [...new Set(ids)];
}

function readId(entry: unknown): string {
  const id: unknown = isRecord(entry) ? (entry.id ?? entry.name ?? entry.model) : entry;
  // Some lists name a model by its resource path, which is not its id.
  return typeof id === "string" ? id.replace(/^models\//, "") : "";
}
