import { z } from "zod";
import type { CommandField } from "../port/catalogue.ts";
import { takeFlags } from "../text/flags.ts";
import { quoteName } from "../text/quote-name.ts";

/**
 * The options for answers in a channel, and how people type them after `/model`. To add an option, change only this
 * file.
 */

/** More than any model can write in one answer. */
const MAX_TOKENS = 1_000_000;
/** Platforms return at most this many messages per request. */
const MAX_CONTEXT = 100;
const DEFAULT = /^(default|reset)$/i;
const MAX_FIELD_CHARS = 10;

/** The gateway's default applies to an absent option. */
export const answerOptions = z.object({
  temperature: z.number().min(0).max(2).exactOptional(),
  /** Maximum answer tokens, including what the model thinks. */
  maxTokens: z.int().min(1).exactOptional(),
  format: z.literal("json").exactOptional(),
  /** Shows the model's thoughts, collapsed, before its answer. */
  thinking: z.literal("shown").exactOptional(),
  /** How much of the web the model reads, if the gateway offers web search. */
  web: z.enum(["low", "medium", "high"]).exactOptional(),
  /** How many earlier messages of the channel the model reads with a question. */
  context: z.int().min(0).max(MAX_CONTEXT).exactOptional(),
});

export type AnswerOptions = z.infer<typeof answerOptions>;

/** The options to change. An option whose value is undefined is reset. */
export type OptionChanges = { [Name in keyof AnswerOptions]?: AnswerOptions[Name] | undefined };

interface OptionWords {
  /** The flag without dashes: `length`. */
  flag: string;
  /** The label of the option's form field. */
  hint: string;
  choices?: readonly string[];
  /** Parses a value. Returns the change, or a phrase that says which values are allowed. */
  read(value: string): OptionChanges | string;
  usual: OptionChanges;
  /** Returns the option in words that can end a sentence; undefined if the gateway's default applies. */
  describe(options: AnswerOptions): string | undefined;
}

const WORDS: { [Name in keyof AnswerOptions]-?: OptionWords } = {
  temperature: {
    flag: "temperature",
    hint: "How varied my answers are: 0 to 2, or default",
    read(value) {
      const number = /^\d(?:[.,]\d{1,3})?$/.test(value) ? Number(value.replace(",", ".")) : Number.NaN;
      return number >= 0 && number <= 2 ? { temperature: number } : "a number from 0 to 2";
    },
    usual: { temperature: undefined },
    describe: ({ temperature }) => (temperature === undefined ? undefined : `with temperature ${temperature}`),
  },
  maxTokens: {
    flag: "length",
    hint: "Maximum length of an answer in tokens, or default",
    read(value) {
      const number = /^\d{1,7}$/.test(value) ? Number(value) : 0;
      return number >= 1 && number <= MAX_TOKENS ? { maxTokens: number } : `a number of tokens from 1 to ${MAX_TOKENS}`;
    },
    usual: { maxTokens: undefined },
    describe: ({ maxTokens }) => (maxTokens === undefined ? undefined : `in at most ${maxTokens} tokens`),
  },
  format: {
    flag: "format",
    hint: "Format of my answers",
    choices: ["text", "json"],
    read(value) {
      if (/^json$/i.test(value)) return { format: "json" };
      return /^text$/i.test(value) ? { format: undefined } : "`text` or `json`";
    },
    usual: { format: undefined },
    describe: ({ format }) => (format === undefined ? undefined : "as JSON"),
  },
  thinking: {
    flag: "thinking",
    hint: "Whether I show the model's thinking before its answer",
    choices: ["shown", "hidden"],
    read(value) {
      if (/^(shown?|on)$/i.test(value)) return { thinking: "shown" };
      return /^(hidden|hide|off)$/i.test(value) ? { thinking: undefined } : "`shown` or `hidden`";
    },
    usual: { thinking: undefined },
    describe: ({ thinking }) => (thinking === undefined ? undefined : "with the model's thinking shown first"),
  },
  web: {
    flag: "web",
    hint: "How much the model reads when it searches the web",
    choices: ["low", "medium", "high", "off"],
    read(value) {
      if (/^off$/i.test(value)) return { web: undefined };
      const { success, data } = answerOptions.shape.web.safeParse(value.toLowerCase());
      return success ? { web: data } : "`low`, `medium`, `high` or `off`";
    },
    usual: { web: undefined },
    describe: ({ web }) => (web === undefined ? undefined : `with a web search (${web})`),
  },
  context: {
    flag: "context",
    hint: `How many of the channel's last messages I read with a question: 0 to ${MAX_CONTEXT}, or default`,
    read(value) {
      const count = /^off$/i.test(value) ? 0 : /^\d{1,3}$/.test(value) ? Number(value) : Number.NaN;
      return count >= 0 && count <= MAX_CONTEXT ? { context: count } : `a number of messages from 0 to ${MAX_CONTEXT}`;
    },
    usual: { context: undefined },
    describe({ context }) {
      if (context === undefined) return undefined;
      if (context === 0) return "without the channel's earlier messages";
      return `with the channel's last ${context === 1 ? "message" : `${context} messages`}`;
    },
  },
};
const ALL = Object.values(WORDS);
const FLAGS = ALL.map(({ flag }) => `\`--${flag}\``).join(", ");

export const OPTIONS_HINT = `To change how I answer here, add ${FLAGS}, each with a value or \`default\`.`;

export const ANSWER_OPTION_FIELDS: readonly CommandField[] = ALL.map(({ flag, hint, choices }) => ({
  name: flag,
  description: hint,
  kind: "text",
  ...(choices ? { choices: choices.map((value) => ({ name: value, value })) } : { maxChars: MAX_FIELD_CHARS }),
}));

/** Returns undefined if no option is left. */
export function changeOptions(before: AnswerOptions, changes: OptionChanges): AnswerOptions | undefined {
  const entries = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : answerOptions.parse(Object.fromEntries(entries));
}

/** Returns the options in words that can end a sentence; "" without options. */
export function describeOptions(options: AnswerOptions = {}): string {
  return ALL.flatMap((option) => option.describe(options) ?? []).join(", ");
}

export interface WrittenOptions {
  /** The text without the options. */
  rest: string;
  changes: OptionChanges;
  /** Each problem is a part of a sentence. */
  problems: string[];
}

/** Separates the options from the rest of a text, and finds every problem. Pure. */
export function readAnswerOptions(text: string): WrittenOptions {
  const problems: string[] = [];
  const changes: OptionChanges = {};
  const rest = takeFlags(text, ({ name, value = "" }) => {
    const option = ALL.find(({ flag }) => flag === name);
    if (option === undefined) {
      problems.push(`there is no option ${quoteName(`--${name}`)}, only ${FLAGS}`);
      return "";
    }
    const found = DEFAULT.test(value) ? option.usual : option.read(value);
    if (typeof found === "string") problems.push(`\`--${name}\` must be ${found}, or \`default\``);
    else Object.assign(changes, found);
    return "";
  });
  return { rest, changes, problems };
}
