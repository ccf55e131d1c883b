import type { ChatMessage } from "../gateway/chunks.ts";
import type { AnswerOptions } from "../settings/answer-options.ts";
import { quoteName } from "../text/quote-name.ts";

/** Noted if tools returned pictures and the model could not see them. */
export const PICTURES_OF_TOOLS = "pictures of tools";

const SEES_NOTHING = "cannot see pictures, so it answered from the words alone";

/** The parts of a request that people notice, by the names of adaptations. */
const CONSEQUENCES: ReadonlyArray<[name: string, consequence: string]> = [
  ["temperature", "does not accept a temperature, so it answered with its own"],
  ["max_tokens", "does not accept this length limit, so it answered with its own"],
  ["response_format", "does not support JSON answers, so I could only ask for JSON in words"],
  ["pictures", SEES_NOTHING],
  [PICTURES_OF_TOOLS, SEES_NOTHING],
  ["tools", "cannot use tools, so it answered without them"],
];

interface Asked {
  /** The model that answered. */
  model: string;
  options: AnswerOptions;
  messages: readonly ChatMessage[];
}

/**
 * Names what people asked with and the model did not accept, as one line of Markdown; "" for none. A model that can use
 * no tools is mentioned under its first answer of a conversation.
 */
export function describeDropped(names: ReadonlySet<string>, { model, options, messages }: Asked): string {
  const wanted: Readonly<Record<string, boolean>> = {
    temperature: options.temperature !== undefined,
    max_tokens: options.maxTokens !== undefined,
    response_format: options.format !== undefined,
    pictures: hasPictures(messages),
    [PICTURES_OF_TOOLS]: true,
    tools: !messages.some(({ role }) => role === "assistant"),
  };
  const lacks = CONSEQUENCES.filter(([name]) => names.has(name) && wanted[name]).map(([, consequence]) => consequence);
  const sentences = [...new Set(lacks)].map((consequence, index) =>
    index === 0 ? `The model ${quoteName(model)} ${consequence}.` : `It ${consequence}.`,
  );
  return sentences.length === 0 ? "" : `_${sentences.join(" ")}_`;
}

/** True if the newest question came with pictures. */
function hasPictures(messages: readonly ChatMessage[]): boolean {
  const question = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
  return question.some(
    ({ content }) => typeof content !== "string" && content.some(({ type }) => type === "image_url"),
  );
}
