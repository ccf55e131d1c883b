import type { Logger } from "pino";
import type { ChatCompletionChunk, ChatRequest } from "./gateway/chunks.ts";
import type { CallOptions, Gateway } from "./gateway/client.ts";
import { GatewayError } from "./gateway/errors.ts";

/** How gateways call it; a tool that is wrong in itself is refused in other words. */
const UNSUPPORTED_CODE = /unsupported|not_supported/i;
const TOOLS_PARAM = /^(tools|tool_choice|functions)$/;
const TOOLS_CODE = /(tools?|function_calling)_not_supported|unsupported_tools?\b/i;
const TOOLS_MESSAGE =
  /not support (tools?|tool use|tool calling|function calling|functions)\b|found that support tool use/i;

/**
 * A gateway that lets every model answer: to one that takes no tools, the request goes once more without them, and
 * from then on without them at once.
 */
export function withOptionalTools(gateway: Gateway, log: Logger): Gateway {
  const toolless = new Set<string>();

  async function* streamChat(
    request: ChatRequest,
    signal: AbortSignal,
    options?: CallOptions,
  ): AsyncGenerator<ChatCompletionChunk, void> {
    const { tools, tool_choice: _, ...plain } = request;
    if (tools === undefined || toolless.has(request.model)) {
      yield* gateway.streamChat(plain, signal, options);
      return;
    }
    try {
      yield* gateway.streamChat(request, signal, options);
      return;
    } catch (error) {
      if (!refusesTools(error)) throw error;
    }
    for await (const chunk of gateway.streamChat(plain, signal, options)) {
      // Only what goes through without them was refused because of them.
      if (!toolless.has(plain.model)) log.info({ model: plain.model }, "the model takes no tools and answers without");
      toolless.add(plain.model);
      yield chunk;
    }
  }

  return { ...gateway, streamChat };
}

/** A refusal as a whole, so nothing of an answer has come. */
function refusesTools(error: unknown): boolean {
  if (!(error instanceof GatewayError) || error.kind !== "rejected") return false;
  const { type = "", code = "", param = "", message } = error;
  if (TOOLS_PARAM.test(param) && UNSUPPORTED_CODE.test(`${type} ${code}`)) return true;
  return TOOLS_CODE.test(code) || TOOLS_MESSAGE.test(message);
}
