// Helpers for all relays to Anthropic's models.
import { type ChatRequest, callsOf, isRecord, type Message, sign } from "../dialect.ts";

/** Returns the last assistant message if it calls tools. The next request must contain its thinking. */
export function lastCaller(messages: readonly Message[]): Message | undefined {
  const last = messages.findLast(({ role }) => role === "assistant");
  return last !== undefined && callsOf(last).length > 0 ? last : undefined;
}

/** Anthropic's error if tool calls come back without their thinking. */
export function toMissingThought(index: number): string {
  return `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`tool_use\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking`;
}

/** Checks that the signature of a thinking block matches its text. */
export function isSigned(block: unknown, text: "thinking" | "text"): boolean {
  return isRecord(block) && typeof block[text] === "string" && block["signature"] === sign(block[text]);
}

/** True if the messages contain tool calls but the request has no tools. */
export function lacksTools({ messages, tools }: ChatRequest): boolean {
  return !tools?.length && messages.some((message) => callsOf(message).length > 0 || message.role === "tool");
}

/** True for a message that relays turn into an empty text block. */
export function hasEmptyText(message: Message): boolean {
  return callsOf(message).length > 0 && message.content === "";
}
