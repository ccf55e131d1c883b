import type { CommandEvent, MessageEvent } from "../port/events.ts";

/** Matches `!name` as the first word. */
const SPOKEN = /^!([a-z][a-z0-9_-]*)(?:\s+([\s\S]*))?$/i;

/** Matches `imagine …` and `/imagine …`. Without the slash, more words must follow. */
const IMAGINE = /^(?:\/imagine(?:\s+([\s\S]*))?|imagine\s+([\s\S]*))$/i;

/** Matches a message that is only "stop", with any punctuation except a question mark, and with an optional "it". */
const STOP = /^[\p{P}\p{S}\s]*stop(?:\s+it)?(?:(?![?？؟])[\p{P}\p{S}\p{Z}\s\uFE0F])*$/iu;

/** After one of these words, `imagine` starts a thought experiment and not an image request. */
const SUPPOSITION =
  /^(?:if|that|being|having|how|what|when|why|you|you're|your|yourself|we|we're|i|i'm|my|our|it|it's|this|there|they|he|she|someone|somebody|everyone|a (?:world|scenario|situation|case|future|day|time))\b/i;

/**
 * Returns the command that a message spells out; undefined if it is not a command:
 * - `!name …` for every known command, because some places have no slash commands.
 * - "stop" alone.
 * - `imagine …` or `/imagine …`.
 *
 * "Imagine" also starts thought experiments. A message with a question mark, or with a word that usually starts a
 * thought experiment, stays a question; the model can still create an image. A message with attached images always asks
 * for an image.
 */
export function toSpokenCommand(event: MessageEvent, names: readonly string[]): CommandEvent | undefined {
  const { key, conversationId, author, reply, at, attachments } = event;
  const spoken = readSpoken(event);
  if (spoken === undefined || !names.includes(spoken.name)) return undefined;
  return { kind: "command", key, conversationId, author, reply, at, ...spoken, attachments, isSpoken: true };
}

function readSpoken({ text, attachments, addressed }: MessageEvent): { name: string; text: string } | undefined {
  const words = text.trim();
  const spoken = SPOKEN.exec(words);
  if (spoken !== null) return { name: spoken[1]?.toLowerCase() ?? "", text: spoken[2]?.trim() ?? "" };
  if (STOP.test(words) && attachments.length === 0) return { name: "stop", text: "" };
  const imagine = IMAGINE.exec(words);
  if (imagine === null || addressed !== "bot") return undefined;
  const [, slashed, plain] = imagine;
  const isThought = plain !== undefined && attachments.length === 0 && isSupposition(plain);
  return isThought ? undefined : { name: "imagine", text: (slashed ?? plain ?? "").trim() };
}

function isSupposition(words: string): boolean {
  return words.includes("?") || SUPPOSITION.test(words.replaceAll("’", "'").trim());
}
