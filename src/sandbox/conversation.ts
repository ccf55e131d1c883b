/** Removes the text that chat bots add to people's words, so that the practice model answers only those words. */
import type { SandboxMessage } from "./chat-request.ts";
import { textOf } from "./tokens.ts";

/** Matches the words with which a bot says that each message starts with its author's name. */
const NAMED = /\bmessages begins with the name of who wrote it and a colon\b/i;
const NAME = /^[^\n:]{1,60}:(?: |$)/;

/** Removes the authors' names. One message can contain several names, each after an empty line. */
export function withoutNames(messages: readonly SandboxMessage[]): readonly SandboxMessage[] {
  if (!messages.some((message) => message.role === "system" && NAMED.test(textOf(message)))) return messages;
  return messages.map((message): SandboxMessage => {
    if (message.role !== "user") return message;
    const { content } = message;
    if (typeof content === "string") return { ...message, content: withoutName(content) };
    const parts = content.map((part) => (part.type === "text" ? { ...part, text: withoutName(part.text) } : part));
    return { ...message, content: parts };
  });
}

function withoutName(text: string): string {
  const [name] = NAME.exec(text) ?? [];
  return name === undefined ? text : text.slice(name.length).replaceAll(`\n\n${name}`, "\n\n");
}

const GO_ON = /^Your answer was cut off\b[^\n]*\n\n/;

/** A truncated answer that the client asks the model to continue. */
export interface CutAnswer {
  before: SandboxMessage[];
  /**
   * Returns `whole` from the last words in the request on; all of it if it does not start with the truncated answer.
   */
  toRest(whole: string): string;
}

/** Undefined if the messages do not request the rest of a truncated answer. */
export function readCutAnswer(messages: readonly SandboxMessage[]): CutAnswer | undefined {
  const at = messages.findLastIndex(({ role }) => role === "user");
  const [said, asked] = [messages[at - 1]?.content, messages[at]?.content];
  if (messages[at - 1]?.role !== "assistant" || typeof said !== "string" || typeof asked !== "string") return undefined;
  const [head] = GO_ON.exec(asked) ?? [];
  if (head === undefined) return undefined;
  const lastWords = asked.slice(head.length);
  return {
    before: [...messages.slice(0, at - 1), ...messages.slice(at + 1)],
    toRest: (whole) => (whole.startsWith(said) ? whole.slice(said.length - lastWords.length) : whole),
  };
}

/** Returns the last message of a text: clients join unanswered messages with an empty line. */
export function lastParagraph(text: string): string {
  return text.slice(text.lastIndexOf("\n\n") + 1);
}
