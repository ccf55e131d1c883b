/** The parts of forms, and how to read them. */
import {
  type APILabelComponent,
  type APIModalInteractionResponseCallbackData,
  type APIModalSubmitInteraction,
  ComponentType,
  TextInputStyle,
} from "discord.js";
import { type Press, readCustomId, toCustomId } from "../write/draft.ts";

/** Longest look-up for a form's value. A later value stays empty. Discord waits three seconds for the form. */
export const FORM_MS = 1_500;

const MAX_OPTIONS = 25;
const MAX_OPTION_CHARS = 100;
const MAX_UPLOADS = 10;

export interface TextFieldOptions {
  name: string;
  label: string;
  maxLength: number;
  value?: string;
  isRequired?: boolean;
  /** True for one line of text; absent: several. */
  isLine?: boolean;
}

export function toTextField({
  name,
  label,
  maxLength,
  value = "",
  isRequired,
  isLine,
}: TextFieldOptions): APILabelComponent {
  const component = {
    type: ComponentType.TextInput as const,
    custom_id: name,
    style: isLine === true ? TextInputStyle.Short : TextInputStyle.Paragraph,
    required: isRequired === true,
    max_length: maxLength,
    ...(value !== "" && { value }),
  };
  return { type: ComponentType.Label, label, component };
}

/** Empty if there are no choices. */
export function toSelectField(
  label: string,
  name: string,
  values: readonly string[],
  chosen: string | undefined,
): APILabelComponent[] {
  const short = values.filter((value) => value.length <= MAX_OPTION_CHARS).slice(0, MAX_OPTIONS);
  // Offers the previous choice even if the list lost it or had no space for it.
  if (chosen !== undefined && chosen.length <= MAX_OPTION_CHARS && !short.includes(chosen)) {
    short.unshift(chosen);
    short.splice(MAX_OPTIONS);
  }
  if (short.length === 0) return [];
  const options = short.map((value) => ({ label: value, value, ...(value === chosen && { default: true }) }));
  const component = { type: ComponentType.StringSelect as const, custom_id: name, required: false, options };
  return [{ type: ComponentType.Label, label, component }];
}

/** Empty if `most` is 0. */
export function toUploadField(label: string, name: string, most: number): APILabelComponent[] {
  if (most < 1) return [];
  const component = {
    type: ComponentType.FileUpload as const,
    custom_id: name,
    min_values: 0,
    max_values: Math.min(most, MAX_UPLOADS),
    required: false,
  };
  return [{ type: ComponentType.Label, label, component }];
}

/**
 * A form that a button opens. Its id is this prefix and the id of the button, so every process can handle the
 * submission, also after a restart.
 */
const PREFIX = "fill:";
const MAX_CUSTOM_ID = 100;

/** Undefined if the button's id is too long for the form's id. */
export function toPressForm(
  { action, turnId, root }: Press,
  form: Omit<APIModalInteractionResponseCallbackData, "custom_id">,
): APIModalInteractionResponseCallbackData | undefined {
  const customId = PREFIX + toCustomId({ action, turnId, root });
  return customId.length > MAX_CUSTOM_ID ? undefined : { custom_id: customId, ...form };
}

/** The button that opened a submitted form. Undefined for a form that no button opened. */
export function readPressForm({ data }: APIModalSubmitInteraction): Press | undefined {
  return data.custom_id.startsWith(PREFIX) ? readCustomId(data.custom_id.slice(PREFIX.length)) : undefined;
}

/** The text of a submitted field, trimmed; "" if empty. */
export function readField({ data }: APIModalSubmitInteraction, name: string): string {
  const fields = data.components.flatMap((holder) => {
    if ("component" in holder) return [holder.component];
    return "components" in holder ? holder.components : [];
  });
  const [field] = fields.filter((one) => "custom_id" in one && one.custom_id === name);
  const value = field !== undefined && "value" in field ? field.value : "";
  return typeof value === "string" ? value.trim() : "";
}
