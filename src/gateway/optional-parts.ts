import type { Logger } from "pino";
import type { ChatCompletionChunk, ChatMessage } from "./chunks.ts";
import type { Gateway, StreamOptions } from "./client.ts";
import { GatewayError } from "./errors.ts";
import type { ChatRequest } from "./validate.ts";

/**
 * A refusal is believed for so long: the model behind a name changes, and some refuse one picture with the words in which
 * others refuse all.
 */
const BELIEVED_MS = 10 * 60_000;

/** Matches the codes with which gateways refuse what a model cannot do; mistakes in a request have other codes. */
const UNSUPPORTED_CODE = /unsupported|not_supported/i;

/** A part of requests that some models do not take. */
export interface OptionalPart {
  isIn(request: ChatRequest): boolean;
  /** The request without the part, or with what stands for it elsewhere. */
  without(request: ChatRequest): ChatRequest;
  /** The field that a refusal names. */
  param: RegExp;
  /** Codes and messages that can mean nothing else. */
  code: RegExp;
  message: RegExp;
  /** Logged when a model has refused it. */
  notice: string;
}

/** Repeats a request without a part that the model does not take, and leaves it out for some time. */
export function withOptionalPart(gateway: Gateway, part: OptionalPart, log: Logger): Gateway {
  /** Until when each model is asked without the part at once, on the clock of `performance`. */
  const refusing = new Map<string, number>();

  async function streamChat(request: ChatRequest, signal: AbortSignal, options: StreamOptions): Promise<void> {
    const { model } = request;
    if (!part.isIn(request)) return gateway.streamChat(request, signal, options);
    const plain = part.without(request);
    if ((refusing.get(model) ?? 0) > performance.now()) return gateway.streamChat(plain, signal, options);
    try {
      return await gateway.streamChat(request, signal, options);
    } catch (error) {
      if (!isRefusalOf(part, error)) throw error;
    }
    let isThrough = false;
    const onChunk = (chunk: ChatCompletionChunk) => {
      // Only what goes through without the part was refused because of it.
      if (!isThrough) {
        log.info({ model }, part.notice);
        refusing.set(model, performance.now() + BELIEVED_MS);
      }
      isThrough = true;
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

/** OpenAI's newer models count their thoughts too, and call the bound by another name. */
const MAX_TOKENS: OptionalPart = {
  isIn: ({ max_tokens }) => max_tokens !== undefined,
  without: ({ max_tokens, ...plain }) => ({ ...plain, max_completion_tokens: max_tokens }),
  param: /^max_tokens$/,
  code: /^max_tokens_not_supported$/,
  message: /max_completion_tokens/,
  notice: "the model takes max_completion_tokens in the place of max_tokens",
};

/**
 * A gateway that lets models answer which take no tools, which see no pictures (words stand in their place), and which
 * call the bound of an answer `max_completion_tokens`.
 */
export function withOptionalParts(gateway: Gateway, log: Logger): Gateway {
  return [MAX_TOKENS, TOOLS, PICTURES].reduce((adapted, part) => withOptionalPart(adapted, part, log), gateway);
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
