import type { Logger } from "pino";
import { readBaseUrl } from "./base-url.ts";
import { ask, type CallDeps, type Question } from "./call.ts";
import { createStreamChat } from "./chat.ts";
import type { ChatRequest } from "./chunks.ts";
import { GatewayError } from "./errors.ts";
import type { GeneratedImage } from "./image-answer.ts";
import type { ImageRequest } from "./image-request.ts";
import { createGenerateImage } from "./images.ts";
import { DEFAULT_LIMITS, type GatewayLimits } from "./limits.ts";
import { parseModelIds } from "./models.ts";
import { type CallOptions, createRetry } from "./retry.ts";
import { createSafeText } from "./safe-text.ts";
import type { OnChunk } from "./stream-decoder.ts";
import { createTransport } from "./transport.ts";

export type { GatewayLimits } from "./limits.ts";
export type { CallOptions, RetryNotice } from "./retry.ts";

export interface StreamOptions extends CallOptions {
  /** Takes what comes without waiting for anything: a promise for each of thousands of chunks would cost too much. */
  onChunk: OnChunk;
}

/**
 * Every method rejects with a GatewayError, or with the signal's reason when the signal aborts. Failures that
 * pass are tried again before that, as long as nothing of the answer has come.
 */
export interface Gateway {
  /**
   * Hands chunks over as they come. Resolves only when the answer is complete: a finish_reason was seen, or `[DONE]`.
   * Otherwise rejects after the chunks that came; also with whatever `onChunk` throws. The signal closes the
   * connection within a second, and no chunk comes after it. Until the first text or tool call, chunks of an attempt
   * that failed may precede those of the next.
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
  log: Logger;
  limits?: Partial<GatewayLimits>;
}

/** Throws a `rejected` GatewayError when an option cannot be used. */
export function createGateway({ baseUrl, apiKey, imageKeyHeader, log, limits: given }: GatewayOptions): Gateway {
  checkHeader(apiKey, imageKeyHeader);
  const limits: GatewayLimits = { ...DEFAULT_LIMITS, ...given };
  const safe = createSafeText([apiKey]);
  const transport = createTransport({ baseUrl: readBaseUrl(baseUrl), apiKey, limits, safe });
  const deps: CallDeps = { transport, retry: createRetry(limits), limits, safe, log };
  const streamChat = createStreamChat(deps);
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
