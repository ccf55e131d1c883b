import { type ChatMessage, textOf } from "../gateway/chunks.ts";
import type { HistoryEntry } from "../history/record.ts";
import { leaveOut } from "../text/leave-out.ts";

/** An image's assumed cost: about as much as 1024 × 1024 pixels cost with common models. */
const IMAGE_TOKENS = 800;
/** Tokens that a message or a call costs in addition to its text. */
const FRAME_TOKENS = 4;
/** If a text must stay but does not fit, it is shortened to about this many tokens. */
const MIN_TEXT_TOKENS = 32;
/** The assumed maximum length of a token. It limits how much of a huge text is estimated. */
const MAX_CHARS_PER_TOKEN = 8;
/**
 * The search for a text's length stops once the length is exact to this share of `maxTokens`, counted in characters.
 */
const UNUSED_SHARE = 1 / 128;

export type Estimate = (text: string) => number;

/** Estimates what an entry costs in a request, without its attachments. */
export function countTokens({ author, messages }: HistoryEntry, estimate: Estimate): number {
  // An author's name costs tokens twice: in its own field and, if several people talk, before the text.
  const name = author === undefined ? 0 : 2 * estimate(author.name);
  return messages.reduce((sum, message) => sum + countMessage(message, estimate), name);
}

/** Removes the middle of a message so that its entry costs at most `maxTokens`. At least a few words stay. */
export function shortenToFit(entry: HistoryEntry, maxTokens: number, estimate: Estimate): HistoryEntry {
  const excess = countTokens(entry, estimate) - maxTokens;
  if (excess <= 0) return entry;
  const messages = entry.messages.map((message) => {
    if (message.role !== "user") return message;
    const text = textOf(message);
    const shortened = shortenText(text, Math.max(MIN_TEXT_TOKENS, estimate(text) - excess), estimate);
    if (typeof message.content === "string") return { ...message, content: shortened };
    const others = message.content.filter(({ type }) => type !== "text");
    return { ...message, content: [{ type: "text" as const, text: shortened }, ...others] };
  });
  return { ...entry, messages };
}

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

/** Removes the middle of a text so that nearly `maxTokens` remain. Tries few lengths, because estimates are slow. */
function shortenText(text: string, maxTokens: number, estimate: Estimate): string {
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

/**
 * Estimates the length at which a text reaches `maxTokens`, as if its tokens were evenly distributed. Moves the result
 * a little towards the middle of the range.
 */
function whereFull(low: Look, high: Look, maxTokens: number, enough: number): number {
  const share = (maxTokens - low.tokens) / Math.max(1, high.tokens - low.tokens);
  const even = low.chars + share * (high.chars - low.chars);
  const nearer = even + (even < halfWay(low, high) ? enough : -enough) / 2;
  return Math.min(high.chars - 1, Math.max(low.chars + 1, Math.round(nearer)));
}
