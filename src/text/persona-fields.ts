import { neutralize } from "./neutralize.ts";
import { toLine } from "./quote-name.ts";

/** The fields of the `/persona` form, named as in `CommandEvent.options`. Both contain text that people write. */
export type PersonaFields = Record<"persona" | "prompts", string>;

/** A persona of this length fits into one message on every platform. */
export const MAX_PERSONA_CHARS = 1_500;
/** Slack shows no more prompts than this. */
const MAX_PROMPTS = 4;
const MAX_PROMPT_CHARS = 150;

/** Returns a sentence for each invalid field, by field name. */
export function findPersonaProblems({ persona, prompts }: Partial<PersonaFields>): Partial<PersonaFields> {
  const { length } = readPersona(persona);
  const given = readPrompts(prompts);
  const isTooMuch = given.length > MAX_PROMPTS || given.some((each) => each.length > MAX_PROMPT_CHARS);
  return {
    ...(length > MAX_PERSONA_CHARS && {
      persona: `A persona can have at most ${MAX_PERSONA_CHARS} characters; this one has ${length}.`,
    }),
    ...(isTooMuch && {
      prompts: `I can suggest at most ${MAX_PROMPTS} prompts of up to ${MAX_PROMPT_CHARS} characters each.`,
    }),
  };
}

/** Reads the prompts of a field: one per line, or separated by bars. */
export function readPrompts(text = ""): string[] {
  return text.split(/[|\n]/).map(toLine).filter(Boolean);
}

/** Removes invisible characters and unnecessary blank lines. */
export function readPersona(text = ""): string {
  return neutralize(text)
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}
