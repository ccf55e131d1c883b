import type { Logger } from "pino";
import type { ChatMessage } from "./chunks.ts";
import type { Gateway } from "./client.ts";
import { type OptionalPart, withOptionalPart } from "./optional-part.ts";

/** Stands for a picture before a model that would refuse the whole conversation because of it. */
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

/**
 * A gateway that lets models answer which see no pictures: with words in their place. A picture drawn in a
 * conversation would otherwise be the end of it.
 */
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
