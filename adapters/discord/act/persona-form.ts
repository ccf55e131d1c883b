import type { APIModalInteractionResponseCallbackData, APIModalSubmitInteraction } from "discord.js";
import type { ReadPersona } from "../../../src/port/catalogue.ts";
import { MAX_PERSONA_CHARS, type PersonaFields } from "../../../src/text/persona-fields.ts";
import { readField, toTextField } from "./text-field.ts";

/** Says all that a form needs: it survives a restart. */
const FORM = "persona";
const LABELS: PersonaFields = {
  persona: "What I am told to be in this channel",
  prompts: "What I suggest in /help, a line each",
};

/** The form for the bot's persona in a channel, filled in with the current one. */
export function toPersonaForm({
  persona = "",
  prompts = [],
}: Awaited<ReturnType<ReadPersona>>): APIModalInteractionResponseCallbackData {
  const field = (name: keyof PersonaFields, value: string) =>
    toTextField({ name, label: LABELS[name], maxLength: MAX_PERSONA_CHARS, value });
  return {
    custom_id: FORM,
    title: "Persona: empty takes back what was set",
    components: [field("persona", persona), field("prompts", prompts.join("\n"))],
  };
}

/** Reads the fields of a submitted form; undefined for a form that is not this one. */
export function readPersonaForm(interaction: APIModalSubmitInteraction): PersonaFields | undefined {
  if (interaction.data.custom_id !== FORM) return undefined;
  return { persona: readField(interaction, "persona"), prompts: readField(interaction, "prompts") };
}
