import { ASPECT_RATIOS, IMAGE_SIZES } from "../gateway/image-ways.ts";
import type { ImagineOptions } from "../port/catalogue.ts";
import type { AttachmentRef } from "../port/events.ts";
import { takeFlags } from "../text/flags.ts";
import { quoteName } from "../text/quote-name.ts";

export const MAX_COUNT = 4;
/** Maximum length of a prompt, in UTF-16 units. */
const MAX_PROMPT_CHARS = 4_000;

export interface ImagineRequest {
  prompt: string;
  ratio?: string;
  size?: string;
  count: number;
  /** The model's name as the person wrote it; undefined for the default model. */
  model?: string;
  isSpoiler: boolean;
  basis?: string;
}

export interface ReadRequest {
  request: ImagineRequest;
  /** Each problem completes the sentence "I can't create that: …". */
  problems: string[];
}

/** The fields of the form, by the names of the command's flags. */
const FLAGS: ReadonlyMap<string, keyof ImagineOptions> = new Map([
  ["ar", "ratio"],
  ["aspect", "ratio"],
  ["ratio", "ratio"],
  ["size", "size"],
  ["count", "count"],
  ["n", "count"],
  ["model", "model"],
  ["spoiler", "spoiler"],
]);
const KNOWN_FLAGS = ["ar", "size", "count", "model", "spoiler"].map((flag) => `\`--${flag}\``).join(", ");

/** Parses a command's text and a form's fields. If they differ, the text counts. Returns all problems at once. Pure. */
export function readImagineRequest(text: string, options: ImagineOptions): ReadRequest {
  const problems: string[] = [];
  const { prompt, given } = readFlags(text, problems);
  const fields = { ...options, ...given };
  if (prompt === "") problems.push("describe the image, for example `/imagine a lighthouse at dusk --ar 16:9`");
  if (prompt.length > MAX_PROMPT_CHARS) problems.push(`the description is longer than ${MAX_PROMPT_CHARS} characters`);
  const ratio = readChoice(fields.ratio, toRatio, ASPECT_RATIOS, "ratio", problems);
  const size = readChoice(fields.size, (size) => size.toUpperCase(), IMAGE_SIZES, "size", problems);
  const model = toFilled(fields.model);
  const basis = toFilled(fields.basis);
  return {
    request: {
      prompt,
      count: readCount(fields.count, problems),
      isSpoiler: /^(true|yes|on|1)$/i.test(fields.spoiler?.trim() ?? ""),
      ...(ratio !== undefined && { ratio }),
      ...(size !== undefined && { size }),
      ...(model !== undefined && { model }),
      ...(basis !== undefined && { basis }),
    },
    problems,
  };
}

function readFlags(text: string, problems: string[]): { prompt: string; given: ImagineOptions } {
  const given: ImagineOptions = {};
  const prompt = takeFlags(text, ({ dash, name, value }) => {
    const field = FLAGS.get(name);
    if (field === undefined) {
      // People also write long dashes in ordinary sentences.
      if (dash !== "--") return undefined;
      problems.push(`there is no option ${quoteName(`--${name}`)}, only ${KNOWN_FLAGS}`);
      return "";
    }
    if (field === "spoiler") {
      given.spoiler = "true";
      return value ?? "";
    }
    if (value === undefined) problems.push(`\`--${name}\` needs a value`);
    else given[field] = value;
    return "";
  });
  return { prompt, given };
}

function readChoice(
  given: string | undefined,
  normalize: (text: string) => string,
  choices: readonly string[],
  name: string,
  problems: string[],
): string | undefined {
  const text = toFilled(given);
  if (text === undefined) return undefined;
  const choice = normalize(text);
  if (choices.includes(choice)) return choice;
  problems.push(`the ${name} ${quoteName(text)} is not one of ${choices.join(", ")}`);
  return undefined;
}

function readCount(given: string | undefined, problems: string[]): number {
  const text = toFilled(given) ?? "1";
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= MAX_COUNT) return count;
  problems.push(`the count ${quoteName(text)} is not a number from 1 to ${MAX_COUNT}`);
  return 1;
}

/** Turns `16x9` and `16/9` into `16:9`. */
function toRatio(text: string): string {
  return text.replace(/\s/g, "").replace(/[x×/]/i, ":");
}

function toFilled(text: string | undefined): string | undefined {
  const trimmed = text?.trim();
  return trimmed === "" ? undefined : trimmed;
}

/** Returns the next larger size; undefined for the largest. Without a size, an image has the smallest. */
export function toNextSize(size: string | undefined): string | undefined {
  return IMAGE_SIZES[IMAGE_SIZES.indexOf(size ?? IMAGE_SIZES[0] ?? "") + 1];
}

export function describeProblems(problems: readonly string[]): string {
  return `I can't create that: ${[...new Set(problems)].join("; ")}.`;
}

export function describeTooMany(references: readonly AttachmentRef[], maxReferences: number): string {
  return `${references.length} images are attached, and an image can start from at most ${maxReferences}`;
}
