import type { SandboxMessage } from "./chat-request.ts";

const GO_ON = /^Your answer was cut off\b[^\n]*\n\n/;

/** A request to go on with an answer that was cut off. */
export interface CutAnswer {
  /** The messages that the cut answer replied to. */
  before: SandboxMessage[];
  /** The part of `whole` that follows the last words repeated in the request; all of it if it is another answer. */
  toRest(whole: string): string;
}

/** Undefined for every other request. */
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
