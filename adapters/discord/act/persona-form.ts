import type { APIModalInteractionResponseCallbackData, APIModalSubmitInteraction } from "discord.js";
import type { ReadPersona } from "../../../src/port/catalogue.ts";
import type { CommandEvent } from "../../../src/port/events.ts";
import { MAX_PERSONA_CHARS, type PersonaFields } from "../../../src/text/persona-fields.ts";
import { PERSONA } from "../install/slash-commands.ts";
import { readField, toTextField } from "./forms.ts";
import { type InteractionEventDeps, type PendingInteraction, toEventBase } from "./user-action.ts";

/** The form's id is constant, so the form survives a restart. */
const FORM = "persona";
const LABELS: PersonaFields = {
  persona: "My instructions for this channel",
  prompts: "Suggestions in /help, one per line",
};

export function toPersonaForm({
  persona = "",
  prompts = [],
}: Awaited<ReturnType<ReadPersona>>): APIModalInteractionResponseCallbackData {
  const field = (name: keyof PersonaFields, value: string) =>
    toTextField({ name, label: LABELS[name], maxLength: MAX_PERSONA_CHARS, value });
  return {
    custom_id: FORM,
    title: "Persona (leave empty to reset)",
    components: [field("persona", persona), field("prompts", prompts.join("\n"))],
  };
}

/** Undefined for other forms. */
export function readPersonaForm(interaction: APIModalSubmitInteraction): PersonaFields | undefined {
  if (interaction.data.custom_id !== FORM) return undefined;
  return { persona: readField(interaction, "persona"), prompts: readField(interaction, "prompts") };
}

export function toPersonaEvent(
  pending: PendingInteraction,
  options: Readonly<Record<string, string>>,
  deps: InteractionEventDeps,
): CommandEvent {
  return { kind: "command", ...toEventBase(pending, deps), name: PERSONA, text: "", options };
}
