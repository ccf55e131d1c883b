import { type ChatMessage, textOf } from "../gateway/chunks.ts";
import type { HistoryEntry } from "../history/record.ts";

/** An image of any size counts as much as 1024 × 1024 pixels cost the common models, about. */
const IMAGE_TOKENS = 800;
/** The frame of a message, or of a call in it, costs this beside its text. */
const FRAME_TOKENS = 4;
/** A text that must be kept although it does not fit keeps about this much. */
const MIN_TEXT_TOKENS = 32;
/** More characters for one token are never kept, so that a huge text is measured only once. */
const MAX_CHARS_PER_TOKEN = 8;

/** Tokens of a text, estimated. */
export type Estimate = (text: string) => number;

/** Estimates the cost of an entry in a request: texts, names, calls, results and images. Its attachments come on top. */
export function countTokens({ author, messages }: HistoryEntry, estimate: Estimate): number {
  // Once in its field and once before the text, where several people talk.
  const name = author === undefined ? 0 : 2 * estimate(author.name);
  return messages.reduce((sum, message) => sum + countMessage(message, estimate), name);
}

/**
 * The same entry, or one whose person's message is cut in the middle so that it costs at most `maxTokens`. Where
 * everything but the text costs more than that already, a few words of it stay all the same.
 */
export function cutToFit(entry: HistoryEntry, maxTokens: number, estimate: Estimate): HistoryEntry {
  const excess = countTokens(entry, estimate) - maxTokens;
  if (excess <= 0) return entry;
  const messages = entry.messages.map((message) => {
    if (message.role !== "user") return message;
    const text = textOf(message);
    const cut = cutText(text, Math.max(MIN_TEXT_TOKENS, estimate(text) - excess), estimate);
    if (typeof message.content === "string") return { ...message, content: cut };
    const others = message.content.filter(({ type }) => type !== "text");
    return { ...message, content: [{ type: "text" as const, text: cut }, ...others] };
  });
  return { ...entry, messages };
}

/** Estimates the cost of a message in a request. */
export function countMessage(message: ChatMessage, estimate: Estimate): number {
  let tokens = FRAME_TOKENS + estimate(textOf(message));
  if (typeof message.content !== "string") {
    tokens += message.content.filter(({ type }) => type === "image_url").length * IMAGE_TOKENS;
  }
  if ("name" in message && message.name !== undefined) tokens += estimate(message.name);
  if (message.role === "tool") tokens += estimate(message.tool_call_id);
  if (message.role !== "assistant") return tokens;
  for (const { id, function: call } of message.tool_calls ?? []) {
    tokens += FRAME_TOKENS + estimate(id) + estimate(call.name) + estimate(call.arguments);
  }
  return tokens;
}

/** Keeps the beginning and the end: what is asked stands before or after what was pasted. */
function cutText(text: string, maxTokens: number, estimate: Estimate): string {
  let fits = 0;
  let tooMany = Math.min(text.length, maxTokens * MAX_CHARS_PER_TOKEN) + 1;
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2);
    if (estimate(leaveOut(text, middle)) <= maxTokens) fits = middle;
    else tooMany = middle;
  }
  return leaveOut(text, fits);
}

function leaveOut(text: string, keptChars: number): string {
  if (keptChars >= text.length) return text;
  let from = Math.ceil(keptChars / 2);
  let to = text.length - Math.floor(keptChars / 2);
  // Never half of a character that takes two units.
  if (isLowSurrogate(text, from)) from--;
  if (isLowSurrogate(text, to)) to++;
  return `${text.slice(0, Math.max(from, 0))}\n[… ${to - from} characters left out …]\n${text.slice(to)}`;
}

/** True when the unit at `index` is the second half of a pair. */
function isLowSurrogate(text: string, index: number): boolean {
  return /[\uDC00-\uDFFF]/.test(text.charAt(index)) && /[\uD800-\uDBFF]/.test(text.charAt(index - 1));
}
