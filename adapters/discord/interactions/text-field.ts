import { type APILabelComponent, type APIModalSubmitInteraction, ComponentType, TextInputStyle } from "discord.js";

export interface TextFieldOptions {
  name: string;
  label: string;
  maxLength: number;
  /** The text that it is opened with. */
  value?: string;
  isRequired?: boolean;
}

/** A field of a form for several lines of text. */
export function toTextField({ name, label, maxLength, value = "", isRequired }: TextFieldOptions): APILabelComponent {
  const component = {
    type: ComponentType.TextInput as const,
    custom_id: name,
    style: TextInputStyle.Paragraph,
    required: isRequired === true,
    max_length: maxLength,
    ...(value !== "" && { value }),
  };
  return { type: ComponentType.Label, label, component };
}

/** The text of a submitted field, trimmed; "" for none. */
export function readField({ data }: APIModalSubmitInteraction, name: string): string {
  const fields = data.components.flatMap((holder) => {
    if ("component" in holder) return [holder.component];
    return "components" in holder ? holder.components : [];
  });
  const [field] = fields.filter((one) => "custom_id" in one && one.custom_id === name);
  const value = field !== undefined && "value" in field ? field.value : "";
  return typeof value === "string" ? value.trim() : "";
}
