import type { SandboxMessage } from "./chat-request.ts";
import { lastParagraph } from "./conversation.ts";
import { describeFaults, type Fault, type Faults, findFault } from "./faults.ts";

/** The last user message and the directions in it. */
export interface Directions {
  /** The message without its files and without the words that request a fault. */
  text: string;
  /** The part of `text` that can contain directions: everything before `say:`. */
  head: string;
  /** The exact answer that the message asks for; undefined if it asks for none. */
  echo: string | undefined;
  fault: Fault | undefined;
  tokensPerSecond: number | undefined;
}

const ECHO = /\b(?:repeat after me|say)\s*:[ \n]?/i;
const FAULT = /\bsandbox fault\s*:\s*([\w-]+(?:=\d+)?)[.,;]?\s*/i;
const EVERY_FAULT = new RegExp(FAULT, "gi");
const FAULT_LIST = /^\W*sandbox faults?\W*$/i;
const SPEED = /\bat ([\d,]{1,9}) (?:words|tokens)(?: per second|\/s)\b/i;

/** Matches a file that was sent as text, or an image's name. In a message, each is a separate part. */
const FILE = /^<file name="[^"\n]*" mark="([0-9a-f]{16})">\n[^]*<\/file mark="\1">$|^Attached picture "[^"\n]*":$/;

/** Only this much text is searched, because directions are at the start of a message. */
const MAX_HEAD_CHARS = 4000;

const SLOW_TOKENS_PER_SECOND = 6;

/** The answer to a message that only requests a fault. It is long enough to break in the middle. */
const FAULT_TEXT = "write 80 words about what can go wrong";

/**
 * Reads the last user message. Text after `say:` and text in files contain no directions. Only the last paragraph can
 * request a fault, because earlier paragraphs can be messages whose fault prevented an answer.
 */
export function readDirections(messages: readonly SandboxMessage[], faults: Faults): Directions {
  const message = messages.findLast(({ role }) => role === "user");
  const whole = readWords(message?.content);
  const spoken = ECHO.exec(whole);
  const echo = spoken === null ? undefined : whole.slice(spoken.index + spoken[0].length);
  const head = whole.slice(0, Math.min(spoken?.index ?? MAX_HEAD_CHARS, MAX_HEAD_CHARS));
  const plain = { text: whole, head, echo, fault: undefined, tokensPerSecond: readSpeed(head) };

  const last = lastParagraph(spoken === null ? whole.trimEnd() : whole.slice(0, spoken.index)).slice(0, MAX_HEAD_CHARS);
  const asked = FAULT.exec(last)?.[1];
  const fault = asked === undefined ? undefined : findFault(asked, faults);
  // Answer a mistyped fault with the list of faults instead of an error.
  if (FAULT_LIST.test(last) || (asked !== undefined && fault === undefined)) {
    return { ...plain, echo: describeFaults(faults) };
  }
  const kept = head.replace(EVERY_FAULT, "").trimStart();
  const text = (kept + whole.slice(head.length)).trimStart();
  if (fault === undefined) return { ...plain, text, head: kept };
  const matter = text.trim() === "" ? { text: FAULT_TEXT, head: FAULT_TEXT } : { text, head: kept };
  return { ...plain, ...matter, fault };
}

function readWords(content: SandboxMessage["content"] | undefined): string {
  if (typeof content === "string") return content;
  const words = (content ?? []).flatMap((part) => (part.type === "text" && !FILE.test(part.text) ? [part.text] : []));
  return words.join("\n\n");
}

function readSpeed(head: string): number | undefined {
  const asked = SPEED.exec(head)?.[1];
  if (asked !== undefined) return Math.max(1, Number(asked.replaceAll(",", "")));
  return /\bslowly\b/i.test(head) ? SLOW_TOKENS_PER_SECOND : undefined;
}
