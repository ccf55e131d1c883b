import type { Logger } from "pino";
import type { ChatCompletionChunk, ChatMessage, ChatRequest } from "./gateway/chunks.ts";
import type { CallOptions, Gateway } from "./gateway/client.ts";
import { GatewayError } from "./gateway/errors.ts";

const UNSUPPORTED_CODE = /unsupported|not_supported/i;
const PICTURES_CODE = /(image|vision)(_input|_url)?s?_not_supported|unsupported_(image|vision)/i;
const CONTENT_PARAM = /^messages(\[|\.)\d/;
const PICTURES_MESSAGE =
  /(not|n't|cannot|only) (support|supported|see|accept|take|process)[^.]{0,40}\b(images?|image_url|vision|pictures?)\b|support image input/i;
/** Stands for a picture before a model that would refuse the whole conversation because of it. */
const UNSEEN = "(You cannot see this picture. Say so when it matters.)";

/**
 * A gateway that lets every model answer: to one that sees no pictures, the request goes once more without them, and
 * from then on without them at once. A picture drawn in a conversation would otherwise be the end of it.
 */
export function withOptionalPictures(gateway: Gateway, log: Logger): Gateway {
  const blind = new Set<string>();

  async function* streamChat(
    request: ChatRequest,
    signal: AbortSignal,
    options?: CallOptions,
  ): AsyncGenerator<ChatCompletionChunk, void> {
    const { model, messages } = request;
    const plain = { ...request, messages: messages.map(withoutPictures) };
    if (blind.has(model) || !messages.some(hasPicture)) {
      yield* gateway.streamChat(plain, signal, options);
      return;
    }
    try {
      yield* gateway.streamChat(request, signal, options);
      return;
    } catch (error) {
      if (!refusesPictures(error)) throw error;
    }
    for await (const chunk of gateway.streamChat(plain, signal, options)) {
      // Only what goes through without them was refused because of them.
      if (!blind.has(model)) log.info({ model }, "the model sees no pictures and answers without");
      blind.add(model);
      yield chunk;
    }
  }

  return { ...gateway, streamChat };
}

/** A refusal as a whole, so nothing of an answer has come. */
function refusesPictures(error: unknown): boolean {
  if (!(error instanceof GatewayError) || error.kind !== "rejected") return false;
  const { type = "", code = "", param = "", message } = error;
  if (CONTENT_PARAM.test(param) && UNSUPPORTED_CODE.test(`${type} ${code}`)) return true;
  return PICTURES_CODE.test(code) || PICTURES_MESSAGE.test(message);
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
