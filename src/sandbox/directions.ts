import type { SandboxMessage } from "./chat-request.ts";
import { describeFaults, FAULTS, type Fault, readFault } from "./faults.ts";
import { textOf } from "./tokens.ts";

/** What a person asks for in words, beside the matter itself. */
export interface Directions {
  /** The last user message without what was said about faults. */
  text: string;
  /** The part of `text` that may steer: everything before `say:`. */
  head: string;
  /** Exactly what is to be said, byte for byte. */
  echo: string | undefined;
  fault: Fault | undefined;
  tokensPerSecond: number | undefined;
}

const ECHO = /\b(?:repeat after me|say)\s*:[ \n]?/i;
const FAULT = /\bsandbox fault\s*:\s*([\w-]+(?:=\d+)?)[.,;]?\s*/i;
const FAULT_LIST = /^\W*sandbox faults?\W*$/i;
const SPEED = /\bat ([\d,]{1,9}) (?:words|tokens)(?: per second|\/s)\b/i;

/** Directions stand at the beginning: what is longer is matter, and searching it would only cost time. */
const MAX_HEAD_CHARS = 4000;

const SLOW_TOKENS_PER_SECOND = 6;
const FAST_TOKENS_PER_SECOND = 400;

/** What is said when a fault is asked for and nothing else: long enough to break in the middle. */
const FAULT_TEXT = "write 80 words about what can go wrong";

/** Reads the last user message. What stands behind `say:` is never read as a direction. */
export function readDirections(messages: readonly SandboxMessage[]): Directions {
  const message = messages.findLast(({ role }) => role === "user");
  const whole = message === undefined ? "" : textOf(message);
  const spoken = ECHO.exec(whole);
  const echo = spoken === null ? undefined : whole.slice(spoken.index + spoken[0].length);
  const head = whole.slice(0, Math.min(spoken?.index ?? MAX_HEAD_CHARS, MAX_HEAD_CHARS));
  const tokensPerSecond = readSpeed(head);

  const asked = FAULT.exec(head);
  const fault = asked?.[1];
  if (FAULT_LIST.test(whole) || (fault !== undefined && !isFault(fault))) {
    return { text: whole, head, echo: describeFaults(), fault: undefined, tokensPerSecond };
  }
  if (asked === null || fault === undefined) return { text: whole, head, echo, fault: undefined, tokensPerSecond };

  const rest = { text: whole.replace(asked[0], "").trim(), head: head.replace(asked[0], "").trim() };
  const matter = rest.text === "" ? { text: FAULT_TEXT, head: FAULT_TEXT } : rest;
  return { ...matter, echo, fault: readFault(fault, null), tokensPerSecond };
}

/** Whether a spoken name is a fault's: a person who mistypes it gets the list as an answer, not an error. */
function isFault(spoken: string): boolean {
  return Object.hasOwn(FAULTS, spoken.replace(/=.*$/, "").replace(/-once$/, ""));
}

function readSpeed(head: string): number | undefined {
  const asked = SPEED.exec(head)?.[1];
  if (asked !== undefined) return Math.max(1, Number(asked.replaceAll(",", "")));
  if (/\bslowly\b|ゆっくり/i.test(head)) return SLOW_TOKENS_PER_SECOND;
  return /\bquickly\b/i.test(head) ? FAST_TOKENS_PER_SECOND : undefined;
}
