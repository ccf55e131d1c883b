import {
  type APIAttachment,
  type APIModalInteractionResponseCallbackData,
  type APIModalSubmitInteraction,
  ComponentType,
  TextInputStyle,
} from "discord.js";
import type { ImagineMenu, ImagineOptions } from "../../../src/port/catalogue.ts";

const MAX_PROMPT = 4_000;
const MAX_OPTIONS = 25;
const MAX_VALUE = 100;
/** Discord takes no more files in one field. */
const MAX_UPLOADS = 10;
const PROMPT = "prompt";
const IMAGES = "images";
const CHOSEN = ["ratio", "size", "count", "model"] as const satisfies (keyof ImagineOptions)[];

type Fields = APIModalInteractionResponseCallbackData["components"];

/** What a form for pictures is opened with. Discord shows five fields at most. */
export interface FormContent {
  customId: string;
  title: string;
  menu: Pick<ImagineMenu, "ratios" | "sizes" | "maxCount" | "maxReferences">;
  /** Empty: which one draws is not asked. */
  models: readonly string[];
  prompt: string;
  options: ImagineOptions;
  /** Asks for further pictures instead of how many are wanted. */
  takesImages: boolean;
}

export function toForm(content: FormContent): APIModalInteractionResponseCallbackData {
  const { customId, title, menu, models, options, takesImages } = content;
  const counts = Array.from({ length: menu.maxCount }, (_, index) => String(index + 1));
  const components = [
    toPromptField(content.prompt),
    ...(takesImages ? toUploadField(menu.maxReferences - 1) : []),
    ...toSelectField("Aspect ratio", "ratio", menu.ratios, options.ratio),
    ...toSelectField("Size", "size", menu.sizes, options.size),
    ...(takesImages ? [] : toSelectField("How many", "count", counts, options.count)),
    ...toSelectField("Model", "model", models, options.model),
  ];
  return { custom_id: customId, title, components: components as Fields };
}

/** What somebody filled into a form. */
export interface Filled {
  prompt: string;
  options: Record<string, string>;
  uploads: APIAttachment[];
}

export function readForm({ data }: APIModalSubmitInteraction): Filled {
  const values = new Map<string, string[]>();
  for (const holder of data.components) {
    const field = ("component" in holder ? holder.component : undefined) as Submitted | undefined;
    if (field !== undefined) values.set(field.custom_id, field.values ?? [field.value ?? ""]);
  }
  const chosen = CHOSEN.flatMap((name) => {
    const [value] = values.get(name) ?? [];
    return value ? [[name, value] as const] : [];
  });
  const uploads = (values.get(IMAGES) ?? []).flatMap((id) => data.resolved?.attachments?.[id] ?? []);
  return { prompt: values.get(PROMPT)?.[0]?.trim() ?? "", options: Object.fromEntries(chosen), uploads };
}

/** A field as it comes back: one value, or those that were picked. */
interface Submitted {
  custom_id: string;
  value?: string;
  values?: string[];
}

function toPromptField(prompt: string): unknown {
  const component = {
    type: ComponentType.TextInput,
    custom_id: PROMPT,
    style: TextInputStyle.Paragraph,
    required: true,
    max_length: MAX_PROMPT,
    ...(prompt !== "" && { value: Array.from(prompt).slice(0, MAX_PROMPT).join("") }),
  };
  return { type: ComponentType.Label, label: "What the picture should show", component };
}

function toUploadField(most: number): unknown[] {
  if (most < 1) return [];
  const component = {
    type: ComponentType.FileUpload,
    custom_id: IMAGES,
    min_values: 0,
    max_values: Math.min(most, MAX_UPLOADS),
    required: false,
  };
  return [{ type: ComponentType.Label, label: "More pictures to draw from", component }];
}

function toSelectField(
  label: string,
  name: (typeof CHOSEN)[number],
  values: readonly string[],
  chosen: string | undefined,
): unknown[] {
  // What was chosen once is offered again, whatever the list says by then.
  const all = chosen === undefined || values.includes(chosen) ? values : [chosen, ...values];
  const short = all.filter((value) => value.length <= MAX_VALUE).slice(0, MAX_OPTIONS);
  if (short.length === 0) return [];
  const options = short.map((value) => ({ label: value, value, ...(value === chosen && { default: true }) }));
  const component = { type: ComponentType.StringSelect, custom_id: name, required: false, options };
  return [{ type: ComponentType.Label, label, component }];
}
