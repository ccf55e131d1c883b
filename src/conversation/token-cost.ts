import { type ChatMessage, textOf } from "../gateway/chunks.ts";
import type { HistoryEntry } from "../history/record.ts";
import { leaveOut } from "../text/leave-out.ts";

/** An image of any size counts as much as 1024 × 1024 pixels cost the common models, about. */
const IMAGE_TOKENS = 800;
/** The frame of a message, or of a call in it, costs this beside its text. */
const FRAME_TOKENS = 4;
/** A text that must be kept although it does not fit keeps about this much. */
const MIN_TEXT_TOKENS = 32;
/** More characters for one token are never kept, so that a huge text is measured only once. */
const MAX_CHARS_PER_TOKEN = 8;
/** The share of the room that a cut text may leave unused, in characters of one token each; the search stops there. */
const UNUSED_SHARE = 1 / 128;

/** Tokens of a text, estimated. */
export type Estimate = (text: string) => number;

/** Estimates the cost of an entry in a request: texts, names, calls, results and images. Its attachments come on top. */
export function countTokens({ author, messages }: HistoryEntry, estimate: Estimate): number {
  // Once in its field and once before the text, where several people talk.
  const name = author === undefined ? 0 : 2 * estimate(author.name);
  return messages.reduce((sum, message) => sum + countMessage(message, estimate), name);
}

/** Cuts the person's message in the middle so that the entry costs at most `maxTokens`; a few words always stay. */
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

/** Both ends of the text, as much as fits but for a few characters. Looks at few lengths: each of them costs an estimate. */
function cutText(text: string, maxTokens: number, estimate: Estimate): string {
  const measure = (chars: number) => ({ chars, tokens: estimate(leaveOut(text, chars)) });
  const enough = Math.max(1, Math.floor(maxTokens * UNUSED_SHARE));
  let fits = measure(0);
  let tooMany = measure(Math.min(text.length, maxTokens * MAX_CHARS_PER_TOKEN));
  if (tooMany.tokens <= maxTokens) return leaveOut(text, tooMany.chars);
  for (let looks = 1; tooMany.chars - fits.chars > enough; looks++) {
    const look = measure(looks % 3 === 0 ? halfWay(fits, tooMany) : whereFull(fits, tooMany, maxTokens, enough));
    if (look.tokens <= maxTokens) fits = look;
    else tooMany = look;
  }
  return leaveOut(text, fits.chars);
}

interface Look {
  chars: number;
  tokens: number;
}

function halfWay(low: Look, high: Look): number {
  return Math.floor((low.chars + high.chars) / 2);
}

/** Estimates where an evenly dense text would reach `maxTokens`, a little nearer to the middle. */
function whereFull(low: Look, high: Look, maxTokens: number, enough: number): number {
  const share = (maxTokens - low.tokens) / Math.max(1, high.tokens - low.tokens);
  const even = low.chars + share * (high.chars - low.chars);
  const nearer = even + (even < halfWay(low, high) ? enough : -enough) / 2;
  return Math.min(high.chars - 1, Math.max(low.chars + 1, Math.round(nearer)));
}
