import type { OptionChanges } from "../settings/answer-options.ts";
import { takeFlags } from "../text/flags.ts";
import { quoteName } from "../text/quote-name.ts";

/** The options of answers, as people write them behind `/model`. */

const DEFAULT = /^(default|reset)$/i;
/** Longer answers than any model gives. */
const MAX_TOKENS = 1_000_000;
/** Platforms give as many messages at once. */
const MAX_CONTEXT = 100;

/** Reads one option: its value, undefined for the usual one, or a sentence's end that says what it may be. */
type Read = (value: string) => OptionChanges | string;

const READERS: Readonly<Record<string, Read>> = {
  temperature: (value) => {
    const number = /^\d(?:[.,]\d{1,3})?$/.test(value) ? Number(value.replace(",", ".")) : Number.NaN;
    return number >= 0 && number <= 2 ? { temperature: number } : "a number from 0 to 2";
  },
  length: (value) => {
    const number = /^\d{1,7}$/.test(value) ? Number(value) : 0;
    return number >= 1 && number <= MAX_TOKENS ? { maxTokens: number } : `a number of tokens from 1 to ${MAX_TOKENS}`;
  },
  format: (value) => {
    if (/^json$/i.test(value)) return { format: "json" };
    return /^text$/i.test(value) ? { format: undefined } : "`text` or `json`";
  },
  thinking: (value) => {
    if (/^(shown?|on)$/i.test(value)) return { thinking: "shown" };
    return /^(hidden|hide|off)$/i.test(value) ? { thinking: undefined } : "`shown` or `hidden`";
  },
  context: (value) => {
    const count = /^off$/i.test(value) ? 0 : /^\d{1,3}$/.test(value) ? Number(value) : Number.NaN;
    return count >= 0 && count <= MAX_CONTEXT ? { context: count } : `a number of messages from 0 to ${MAX_CONTEXT}`;
  },
};
const USUAL: Readonly<Record<string, OptionChanges>> = {
  temperature: { temperature: undefined },
  length: { maxTokens: undefined },
  format: { format: undefined },
  thinking: { thinking: undefined },
  context: { context: undefined },
};
const NAMES = Object.keys(READERS)
  .map((name) => `\`--${name}\``)
  .join(", ");

export const OPTIONS_HINT = `${NAMES} behind it, each with a value or \`default\`, say how I answer here.`;

export interface ParsedOptions {
  /** The text without the options. */
  rest: string;
  changes: OptionChanges;
  /** Each is a part of a sentence. */
  problems: string[];
}

/** Takes the options out of what was written behind the command. Finds every problem. Pure. */
export function readAnswerOptions(text: string): ParsedOptions {
  const problems: string[] = [];
  const changes: OptionChanges = {};
  const rest = takeFlags(text, ({ name, value = "" }) => {
    const read = Object.hasOwn(READERS, name) ? READERS[name] : undefined;
    if (read === undefined) {
      problems.push(`there is no option ${quoteName(`--${name}`)}, only ${NAMES}`);
      return "";
    }
    const found = DEFAULT.test(value) ? (USUAL[name] ?? {}) : read(value);
    if (typeof found === "string") problems.push(`\`--${name}\` is ${found}, or \`default\``);
    else Object.assign(changes, found);
    return "";
  });
  return { rest, changes, problems };
}
