import { neutralize } from "./neutralize.ts";
import { toLine } from "./quote-name.ts";

/** The fields of `/persona`'s form, by their names in `CommandEvent.options`; both are text, as people write it. */
export type PersonaFields = Record<"persona" | "prompts", string>;

/** One message, on the platforms with the shortest ones, shows all of it. */
export const MAX_PERSONA_CHARS = 1_500;
/** Slack shows no more. */
const MAX_PROMPTS = 4;
const MAX_PROMPT_CHARS = 150;

/** Says in a sentence what is wrong with a field, by its name. Empty when nothing is. */
export function findPersonaProblems({ persona, prompts }: Partial<PersonaFields>): Partial<PersonaFields> {
  const { length } = readPersona(persona);
  const given = readPrompts(prompts);
  const isTooMuch = given.length > MAX_PROMPTS || given.some((each) => each.length > MAX_PROMPT_CHARS);
  return {
    ...(length > MAX_PERSONA_CHARS && {
      persona: `A persona has at most ${MAX_PERSONA_CHARS} characters, and this has ${length}.`,
    }),
    ...(isTooMuch && {
      prompts: `At most ${MAX_PROMPTS} prompts of ${MAX_PROMPT_CHARS} characters can be suggested.`,
    }),
  };
}

/** The prompts of a field: one in each line, or between two bars. */
export function readPrompts(text = ""): string[] {
  return text.split(/[|\n]/).map(toLine).filter(Boolean);
}

/** The text without invisible characters and without needless room between its lines. */
export function readPersona(text = ""): string {
  return neutralize(text)
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}
