/** The form that changes a schedule. */
import type { APIModalInteractionResponseCallbackData, APIModalSubmitInteraction } from "discord.js";
import { type ActionEvent, MAX_SCHEDULE_CHARS, type ScheduleFields } from "../../../src/port/events.ts";
import type { Press } from "../write/draft.ts";
import { readField, toPressForm, toTextField } from "./forms.ts";

const LABELS: ScheduleFields = { time: "When", task: "What I should do then" };

/** The form for a schedule's time and task, filled in with the current ones. */
export function toScheduleForm(
  press: Press,
  values: ScheduleFields,
): APIModalInteractionResponseCallbackData | undefined {
  const field = (name: keyof ScheduleFields, isLine: boolean) => {
    const maxLength = MAX_SCHEDULE_CHARS[name];
    return toTextField({ name, label: LABELS[name], maxLength, value: values[name], isRequired: true, isLine });
  };
  return toPressForm(press, { title: "Schedule", components: [field("time", true), field("task", false)] });
}

/** The part of the event that a submitted form adds to its button's press. */
export function readSchedule(interaction: APIModalSubmitInteraction): Pick<ActionEvent, "fields"> {
  return { fields: { time: readField(interaction, "time"), task: readField(interaction, "task") } };
}
