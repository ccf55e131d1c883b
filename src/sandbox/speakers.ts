import type { SandboxMessage } from "./chat-request.ts";
import { textOf } from "./tokens.ts";

/** Clients announce with these words that names stand before what people say. */
const NAMED = /\bmessages begins with the name of who wrote it and a colon\b/i;
const NAME = /^([^\n:]{1,60}):(?: |$)/;

/** The messages without the names before people's words; one message may hold several, after empty lines. */
export function withoutNames(messages: readonly SandboxMessage[]): readonly SandboxMessage[] {
  if (!messages.some((message) => message.role === "system" && NAMED.test(textOf(message)))) return messages;
  return messages.map((message) => (message.role === "user" ? withoutName(message) : message));
}

function withoutName(message: Extract<SandboxMessage, { role: "user" }>): SandboxMessage {
  const { content } = message;
  const [name] = NAME.exec(typeof content === "string" ? content : textOf(message)) ?? [];
  if (name === undefined) return message;
  const strip = (text: string) =>
    text
      .split("\n\n")
      .map((paragraph) => (`${paragraph} `.startsWith(name) ? paragraph.slice(name.length) : paragraph))
      .join("\n\n");
  if (typeof content === "string") return { ...message, content: strip(content) };
  return {
    ...message,
    content: content.map((part) => (part.type === "text" ? { ...part, text: strip(part.text) } : part)),
  };
}
