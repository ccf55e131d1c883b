import type { CommandEvent, MessageEvent } from "../port/events.ts";

/** `!name`, as the first word. */
const SPOKEN = /^!([a-z][a-z0-9_-]*)(?:\s+([\s\S]*))?$/i;

/** `imagine …` and `/imagine …`; without the slash it needs more than the word. */
const IMAGINE = /^(?:\/imagine(?:\s+([\s\S]*))?|imagine\s+([\s\S]*))$/i;

/** The word alone, however loud and in whatever script's punctuation, and the same to an address; no question mark. */
const STOP = /^[\p{P}\p{S}\s]*stop(?:\s+it)?(?:(?![?？؟])[\p{P}\p{S}\p{Z}\s\uFE0F])*$/iu;

/** Words after `imagine` that ask for thoughts rather than for a picture. */
const SUPPOSITION =
  /^(?:if|that|being|having|how|what|when|why|you|you're|your|yourself|we|we're|i|i'm|my|our|it|it's|this|there|they|he|she|someone|somebody|everyone|a (?:world|scenario|situation|case|future|day|time))\b/i;

/**
 * The command that a message to the bot says in words: `!name …` for every known name, which also works where platforms
 * take no slash; and `stop` alone; and for pictures `/imagine …` and `imagine …`. The last is also how people begin a supposition. With a
 * question mark, or with the words that suppositions begin with, it stays a message: the model that reads it may still
 * draw, whereas a picture is no answer. A message with pictures attached is about them. Undefined: it is no command.
 */
export function toSpokenCommand(event: MessageEvent, names: readonly string[]): CommandEvent | undefined {
  const { key, conversationId, author, reply, at, attachments } = event;
  const said = readSpoken(event);
  if (said === undefined || !names.includes(said.name)) return undefined;
  return { kind: "command", key, conversationId, author, reply, at, ...said, attachments, isSpoken: true };
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
