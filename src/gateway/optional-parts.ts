import type { Logger } from "pino";
import type { ChatCompletionChunk, ChatMessage } from "./chunks.ts";
import type { Gateway, StreamOptions } from "./client.ts";
import { GatewayError } from "./errors.ts";
import type { ChatRequest } from "./validate.ts";

/** Matches the codes with which gateways refuse what a model cannot do; mistakes in a request have other codes. */
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
  /** Logged once for each model. */
  notice: string;
}

/** Repeats a request without a part that the model does not take, and leaves it out from then on. */
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

const TOOLS: OptionalPart = {
  isIn: ({ tools }) => tools !== undefined,
  without: ({ tools: _tools, tool_choice: _choice, ...plain }) => plain,
  param: /^(tools|tool_choice|functions)$/,
  code: /(tools?|function_calling)_not_supported|unsupported_tools?\b/i,
  message: new RegExp(
    [
      "(not|n't) support (tools?|tool use|tool calling|function calling|functions)\\b",
      "\\b(tools?|tool use|tool calling|function calling|functions)[`'\"]? (is|are) not (supported|enabled|available)",
      "found that support tool use",
      // From servers for open models that were started without a parser of calls.
      "tool choice requires",
      "tools param requires",
      "argument supplied: tools",
    ].join("|"),
    "i",
  ),
  notice: "the model takes no tools and answers without",
};

/** A gateway that lets models answer which take no tools: without them. */
export function withOptionalTools(gateway: Gateway, log: Logger): Gateway {
  return withOptionalPart(gateway, TOOLS, log);
}

/** Stands in for a picture where the model would refuse the whole conversation because of it. */
const UNSEEN = "(You cannot see this picture. Say so when it matters.)";

const PICTURES: OptionalPart = {
  isIn: ({ messages }) => messages.some(hasPicture),
  without: (request) => ({ ...request, messages: request.messages.map(withoutPictures) }),
  param: /^messages(\[|\.)\d/,
  code: /(image|vision)(_input|_url)?s?_not_supported|unsupported_(image|vision)/i,
  message: new RegExp(
    [
      "(not|n't|cannot|only) (support|supported|see|accept|take|process)[^.]{0,40}\\b(images?|image_url|vision|pictures?)\\b",
      "\\b(images?|image (inputs?|content)|image_url|vision|pictures?)[`'\"]? (is|are) (not|only) (supported|enabled|available)",
      "(support|required for) image input",
      "not a multimodal model",
      "at most 0 image",
      // Models that take no parts take no pictures either.
      "content must be a string",
      "unknown variant `image_url`",
    ].join("|"),
    "i",
  ),
  notice: "the model sees no pictures and answers without",
};

/** Puts words in the place of pictures for models that see none, so that a conversation can go on. */
export function withOptionalPictures(gateway: Gateway, log: Logger): Gateway {
  return withOptionalPart(gateway, PICTURES, log);
}

function hasPicture({ content }: ChatMessage): boolean {
  return typeof content !== "string" && content.some(({ type }) => type === "image_url");
}

/** Text alone, as one string: some of these models take no parts at all. */
function withoutPictures(message: ChatMessage): ChatMessage {
  if (message.role !== "user" || typeof message.content === "string" || !hasPicture(message)) return message;
  const texts = message.content.map((part) => (part.type === "text" ? part.text : UNSEEN));
  return { ...message, content: texts.join("\n\n") };
}
