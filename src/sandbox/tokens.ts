import { estimateTokenCount } from "tokenx";
import type { SandboxChatRequest, SandboxMessage } from "./chat-request.ts";

/** The tokens of a message in addition to its text. */
const MESSAGE_TOKENS = 4;
const IMAGE_TOKENS = 85;

/** Matches roughly one token: a short run of letters with the space before it, one Japanese character, or one mark. */
const TOKEN =
  /\s?(?:[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}\p{M}]{1,6}|[^\s\p{L}\p{N}\p{M}])|\s/gsu;

/** The sizes of a stream's pieces, in tokens. They repeat, so that a stream is uneven but the same every time. */
const TOKENS_PER_PIECE = [1, 2, 3, 2];

export interface Piece {
  text: string;
  tokens: number;
}

export function countTokens(text: string): number {
  return text === "" ? 0 : estimateTokenCount(text);
}

/** Divides a text into the pieces that a stream sends. Never splits a code point. */
export function splitPieces(text: string): Piece[] {
  const tokens = text.match(TOKEN) ?? [];
  const pieces: Piece[] = [];
  for (let at = 0; at < tokens.length; ) {
    const take = TOKENS_PER_PIECE[pieces.length % TOKENS_PER_PIECE.length] ?? 1;
    const part = tokens.slice(at, at + take);
    pieces.push({ text: part.join(""), tokens: part.length });
    at += take;
  }
  return pieces;
}

export function truncateToTokens(text: string, maxTokens: number): string {
  if (countTokens(text) <= maxTokens) return text;
  const tokens = text.match(TOKEN) ?? [];
  let low = 0;
  let high = tokens.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (countTokens(tokens.slice(0, middle).join("")) <= maxTokens) low = middle;
    else high = middle - 1;
  }
  return tokens.slice(0, low).join("");
}

export function countPromptTokens({ messages, tools }: SandboxChatRequest): number {
  const shown = messages.reduce((sum, message) => sum + countMessage(message), 0);
  return shown + (tools?.length ? countTokens(JSON.stringify(tools)) : 0);
}

function countMessage(message: SandboxMessage): number {
  const calls = message.role === "assistant" && message.tool_calls ? JSON.stringify(message.tool_calls) : "";
  const images = imageUrls(message).length;
  return MESSAGE_TOKENS + countTokens(textOf(message)) + countTokens(calls) + images * IMAGE_TOKENS;
}

export function textOf({ content }: SandboxMessage): string {
  if (typeof content === "string") return content;
  return (content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

export function imageUrls({ content }: SandboxMessage): string[] {
  if (typeof content === "string") return [];
  return (content ?? []).flatMap((part) => (part.type === "image_url" ? [part.image_url.url] : []));
}
