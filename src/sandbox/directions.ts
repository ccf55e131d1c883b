import type { SandboxMessage } from "./chat-request.ts";
import { describeFaults, FAULTS, type Fault, readFault } from "./faults.ts";
import { type Dialect, describeDialects, isDialect } from "./thinking.ts";

/** Directions that a person gives in words, beside the subject itself. */
export interface Directions {
  /** The last user message without files and what was said about faults and thinking. */
  text: string;
  files: GivenFile[];
  /** The part of `text` that may steer: everything before `say:`. */
  head: string;
  /** Exactly what is to be said, byte for byte. */
  echo: string | undefined;
  fault: Fault | undefined;
  /** The model is to think before it answers, and to send that in this way. */
  dialect: Dialect | undefined;
  tokensPerSecond: number | undefined;
}

/** A file in the last user message. */
export interface GivenFile {
  name: string;
  /** At most 200 characters of its first line that is not blank. */
  firstLine: string;
}

const ECHO = /\b(?:repeat after me|say)\s*:[ \n]?/i;
const FAULT = /\bsandbox fault\s*:\s*([\w-]+(?:=\d+)?)[.,;]?\s*/i;
const EVERY_FAULT = new RegExp(FAULT, "gi");
const FAULT_LIST = /^\W*sandbox faults?\W*$/i;
const THINKING = /\bsandbox thinking\s*:\s*(\w+)[.,;]?\s*/i;
const EVERY_THINKING = new RegExp(THINKING, "gi");
const DIALECT_LIST = /^\W*sandbox thinking\W*$/i;
const SPEED = /\bat ([\d,]{1,9}) (?:words|tokens)(?: per second|\/s)\b/i;

/** The head of a file that is shown as text, in a part of its own. */
const FILE_HEAD = /^<file name="([^"\n]*)" mark="([0-9a-f]{16})">\n\s*(?!<\/file mark)(.{0,200})/;

/** The part of its own that stands before a picture: the picture's name is none of the person's words. */
const PICTURE_HEAD = /^Attached picture "[^"\n]*":$/;

/** Directions stand at the beginning: what is longer is matter, and searching it would only cost time. */
const MAX_HEAD_CHARS = 4000;

const SLOW_TOKENS_PER_SECOND = 6;
const FAST_TOKENS_PER_SECOND = 400;

/** Stands for the words of a question that asks for a fault and nothing else: long enough to break in the middle. */
const FAULT_TEXT = "write 80 words about what can go wrong";

/**
 * Reads the last user message. What stands behind `say:` or in a file is never read as a direction. A fault is asked
 * for by the last paragraph: those before it may be messages that have had their fault, and so no answer.
 */
export function readDirections(messages: readonly SandboxMessage[]): Directions {
  const message = messages.findLast(({ role }) => role === "user");
  const { whole, files } = readParts(message?.content);
  const spoken = ECHO.exec(whole);
  const echo = spoken === null ? undefined : whole.slice(spoken.index + spoken[0].length);
  const head = whole.slice(0, Math.min(spoken?.index ?? MAX_HEAD_CHARS, MAX_HEAD_CHARS));
  const tokensPerSecond = readSpeed(head);
  const plain = { text: whole, head, files, dialect: undefined, fault: undefined, tokensPerSecond };

  const last = lastParagraph(spoken === null ? whole.trimEnd() : whole.slice(0, spoken.index)).slice(0, MAX_HEAD_CHARS);
  const fault = FAULT.exec(last)?.[1];
  if (FAULT_LIST.test(last) || (fault !== undefined && !isFault(fault))) {
    return { ...plain, echo: describeFaults() };
  }
  const named = THINKING.exec(last)?.[1]?.toLowerCase();
  const dialect = named !== undefined && isDialect(named) ? named : undefined;
  if (DIALECT_LIST.test(last) || (named !== undefined && dialect === undefined)) {
    return { ...plain, echo: describeDialects() };
  }
  const kept = head.replace(EVERY_FAULT, "").replace(EVERY_THINKING, "").trimStart();
  const text = (kept + whole.slice(head.length)).trimStart();
  if (fault === undefined) return { ...plain, text, head: kept, echo, dialect };
  const matter = text.trim() === "" ? { text: FAULT_TEXT, head: FAULT_TEXT } : { text, head: kept };
  return { ...plain, ...matter, echo, dialect, fault: readFault(fault, null) };
}

/** A person's own words, and the files next to them. */
function readParts(content: SandboxMessage["content"] | undefined): { whole: string; files: GivenFile[] } {
  if (typeof content === "string") return { whole: content, files: [] };
  const files: GivenFile[] = [];
  const words: string[] = [];
  for (const part of content ?? []) {
    if (part.type !== "text" || PICTURE_HEAD.test(part.text)) continue;
    const [, name, mark, firstLine = ""] = FILE_HEAD.exec(part.text) ?? [];
    if (name !== undefined && part.text.endsWith(`</file mark="${mark}">`)) files.push({ name, firstLine });
    else words.push(part.text);
  }
  return { whole: words.join("\n\n"), files };
}

/** The latest message: clients put messages that have no answer into one, with an empty line between them. */
export function lastParagraph(text: string): string {
  return text.slice(text.lastIndexOf("\n\n") + 1);
}

/** A spoken name is a fault's: a person who mistypes it gets the list as an answer, not an error. */
function isFault(spoken: string): boolean {
  return Object.hasOwn(FAULTS, spoken.replace(/=.*$/, "").replace(/-once$/, ""));
}

function readSpeed(head: string): number | undefined {
  const asked = SPEED.exec(head)?.[1];
  if (asked !== undefined) return Math.max(1, Number(asked.replaceAll(",", "")));
  if (/\bslowly\b|ゆっくり/i.test(head)) return SLOW_TOKENS_PER_SECOND;
  return /\bquickly\b/i.test(head) ? FAST_TOKENS_PER_SECOND : undefined;
}
