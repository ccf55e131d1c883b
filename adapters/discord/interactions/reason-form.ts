import {
  type APIModalInteractionResponseCallbackData,
  type APIModalSubmitInteraction,
  ComponentType,
  TextInputStyle,
} from "discord.js";
import { MAX_REASON_LENGTH } from "../../../src/port/events.ts";
import { type Press, readCustomId, toCustomId } from "../write/message-body.ts";

/** Stands before the id of the button that opened the form: all of it survives a restart. */
const PREFIX = "why:";
const REASON = "reason";
const MAX_CUSTOM_ID = 100;

/** The form that asks why an answer is bad. Undefined where the button's id leaves no room for the form's. */
export function toReasonForm(press: Press): APIModalInteractionResponseCallbackData | undefined {
  const customId =
    PREFIX + toCustomId({ action: "bad", turnId: press.turnId, ...(press.root && { root: press.root }) });
  if (customId.length > MAX_CUSTOM_ID) return undefined;
  const component = {
    type: ComponentType.TextInput as const,
    custom_id: REASON,
    style: TextInputStyle.Paragraph,
    required: false,
    max_length: MAX_REASON_LENGTH,
  };
  const label = { type: ComponentType.Label as const, label: "Why? Your judgement counts already.", component };
  return { custom_id: customId, title: "What was wrong with the answer?", components: [label] };
}

/** Reads a submitted form; undefined for a form that is not this one. An empty reason says nothing. */
export function readReasonForm(interaction: APIModalSubmitInteraction): { press: Press; reason: string } | undefined {
  const { data } = interaction;
  if (!data.custom_id.startsWith(PREFIX)) return undefined;
  const press = readCustomId(data.custom_id.slice(PREFIX.length));
  if (press?.action !== "bad") return undefined;
  return { press, reason: readField(interaction, REASON) };
}

/** What was written into a field of a form; "" for nothing. */
export function readField({ data }: APIModalSubmitInteraction, name: string): string {
  const fields = data.components.flatMap((holder) => {
    if ("component" in holder) return [holder.component];
    return "components" in holder ? holder.components : [];
  });
  const [field] = fields.filter((one) => "custom_id" in one && one.custom_id === name);
  const value = field !== undefined && "value" in field ? field.value : "";
  return typeof value === "string" ? value.trim() : "";
}
