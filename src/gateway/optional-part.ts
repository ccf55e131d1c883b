import type { Logger } from "pino";
import type { ChatCompletionChunk, ChatRequest } from "./chunks.ts";
import type { Gateway, StreamOptions } from "./client.ts";
import { GatewayError } from "./errors.ts";

/** How gateways call what a model cannot do; what is wrong in itself is refused in other words. */
const UNSUPPORTED_CODE = /unsupported|not_supported/i;

/** A part of requests that some models do not take. */
export interface OptionalPart {
  isIn(request: ChatRequest): boolean;
  without(request: ChatRequest): ChatRequest;
  /** The field that a refusal names. */
  param: RegExp;
  /** Codes and messages that can mean nothing else. */
  code: RegExp;
  message: RegExp;
  /** For the log, once for each model. */
  notice: string;
}

/**
 * A gateway that lets every model answer: to one that does not take the part, the request goes once more without it,
 * and from then on without it at once.
 */
export function withOptionalPart(gateway: Gateway, part: OptionalPart, log: Logger): Gateway {
  const refusing = new Set<string>();

  async function streamChat(request: ChatRequest, signal: AbortSignal, options: StreamOptions): Promise<void> {
    const { model } = request;
    if (!part.isIn(request)) return gateway.streamChat(request, signal, options);
    const plain = part.without(request);
    if (refusing.has(model)) return gateway.streamChat(plain, signal, options);
    try {
      return await gateway.streamChat(request, signal, options);
    } catch (error) {
      if (!isRefusalOf(part, error)) throw error;
    }
    const onChunk = (chunk: ChatCompletionChunk) => {
      // Only what goes through without the part was refused because of it.
      if (!refusing.has(model)) log.info({ model }, part.notice);
      refusing.add(model);
      options.onChunk(chunk);
    };
    return gateway.streamChat(plain, signal, { ...options, onChunk });
  }

  return { ...gateway, streamChat };
}

/** A refusal as a whole, so nothing of an answer has come. Some servers call it a failure of their own. */
function isRefusalOf(part: OptionalPart, error: unknown): boolean {
  if (!(error instanceof GatewayError) || (error.kind !== "rejected" && error.status !== 500)) return false;
  const { type = "", code = "", param = "", message } = error;
  if (part.param.test(param) && UNSUPPORTED_CODE.test(`${type} ${code}`)) return true;
  return part.code.test(code) || part.message.test(message);
}
