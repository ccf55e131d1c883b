import type { APIModalInteractionResponseCallbackData, APIModalSubmitInteraction } from "discord.js";
import { type ActionEvent, MAX_REASON_CHARS } from "../../../src/port/events.ts";
import type { Press } from "../write/draft.ts";
import { readField, toPressForm, toTextField } from "./forms.ts";

const REASON = "reason";

/** The form that asks why an answer is bad. It opens when the rating is stored. */
export function toReasonForm(press: Press): APIModalInteractionResponseCallbackData | undefined {
  const label = "Why? Your rating is already saved.";
  const field = toTextField({ name: REASON, label, maxLength: MAX_REASON_CHARS });
  return toPressForm(press, { title: "What was wrong with the answer?", components: [field] });
}

/** The part of the event that a submitted form adds to its button's press. */
export function readReason(interaction: APIModalSubmitInteraction): Pick<ActionEvent, "reason"> {
  const reason = readField(interaction, REASON);
  return reason === "" ? {} : { reason };
}
