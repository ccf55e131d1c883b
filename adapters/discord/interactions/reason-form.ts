import type { APIModalInteractionResponseCallbackData, APIModalSubmitInteraction } from "discord.js";
import { MAX_REASON_CHARS } from "../../../src/port/events.ts";
import { type Press, readCustomId, toCustomId } from "../write/message-body.ts";
import { readField, toTextField } from "./text-field.ts";

/** Stands before the id of the button that opened the form: all of it survives a restart. */
const PREFIX = "why:";
const REASON = "reason";
const MAX_CUSTOM_ID = 100;

/** The form that asks why an answer is bad. Undefined where the button's id leaves no room for the form's. */
export function toReasonForm(press: Press): APIModalInteractionResponseCallbackData | undefined {
  const customId =
    PREFIX + toCustomId({ action: "bad", turnId: press.turnId, ...(press.root && { root: press.root }) });
  if (customId.length > MAX_CUSTOM_ID) return undefined;
  const label = "Why? Your judgement counts already.";
  const field = toTextField({ name: REASON, label, maxLength: MAX_REASON_CHARS });
  return { custom_id: customId, title: "What was wrong with the answer?", components: [field] };
}

/** Reads a submitted form; undefined for a form that is not this one. An empty reason says nothing. */
export function readReasonForm(interaction: APIModalSubmitInteraction): { press: Press; reason: string } | undefined {
  const { data } = interaction;
  if (!data.custom_id.startsWith(PREFIX)) return undefined;
  const press = readCustomId(data.custom_id.slice(PREFIX.length));
  if (press?.action !== "bad") return undefined;
  return { press, reason: readField(interaction, REASON) };
}
