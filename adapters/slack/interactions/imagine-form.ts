import type { ImagineMenu, ImagineOptions } from "../../../src/port/catalogue.ts";
import type { AttachmentRef } from "../../../src/port/events.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { type Body, readText, toBodies, toBody } from "../api/wire.ts";
import { PLATFORM } from "../ids.ts";
import { escapeMarkup } from "../write/markdown.ts";
import type { SubmissionPayload } from "./payloads.ts";
import {
  field,
  form,
  MAX_PROMPT_CHARS,
  plain,
  readElement,
  readTextArea,
  remark,
  select,
  textArea,
  VALUE,
} from "./views.ts";

/** `callback_id` of the form for pictures. */
export const IMAGINE_FORM = "imagine_form";
export const PROMPT = "prompt";
export const WHERE = "where";
const REFERENCES = "references";
/** Files that Slack takes in one field, of ten megabytes each. */
const MAX_FILES = 10;
const MAX_METADATA_CHARS = 3_000;
const MAX_NAME_CHARS = 60;
const FILE_TYPES = ["png", "jpg", "jpeg", "gif", "webp", "heic"];

/** The form's state until it is sent: Slack keeps it with the form, unseen. */
export interface FormContext {
  /** Absent: the form asks where the picture goes. */
  channelId?: string | undefined;
  threadTs?: string | undefined;
  responseUrl?: string | undefined;
  /** The person whose form it is, by Slack's own id: nobody else can send it. */
  personId: string;
  /** Only this person sees the picture. */
  isPrivate?: boolean | undefined;
  /** The picture that is edited. */
  basis?: string | undefined;
  references: readonly AttachmentRef[];
}

export interface Prefill {
  prompt: string;
  options: ImagineOptions;
  models: readonly string[];
}

/** The form as Slack is told it. */
export function toImagineForm(menu: ImagineMenu, context: FormContext, { prompt, options, models }: Prefill): Body {
  const freeFiles = Math.min(MAX_FILES, menu.maxReferences - context.references.length - (context.basis ? 1 : 0));
  const counts = Array.from({ length: menu.maxCount }, (_, index) => String(index + 1));
  const blocks = [
    field(PROMPT, "What should I draw?", {
      ...textArea(MAX_PROMPT_CHARS, prompt),
      placeholder: plain("A lighthouse in the fog, as a woodcut"),
    }),
    ...describeReferences(context),
    ...(freeFiles > 0 ? [toFileField(freeFiles)] : []),
    ...choice("ratio", "Shape", menu.ratios, options.ratio),
    ...choice("size", "Size", menu.sizes, options.size),
    ...choice("count", "How many", counts, options.count),
    ...choice("model", "Model", models, options.model),
    ...(context.channelId === undefined ? [toPlaceField()] : []),
  ];
  return form({ id: IMAGINE_FORM, title: "Draw a picture", submit: "Draw", metadata: writeContext(context), blocks });
}

/** The values of a form that was sent. Files are as Slack describes them. */
export interface FormValues {
  prompt: string;
  options: ImagineOptions;
  files: readonly Body[];
  /** Chosen in the form, where it asks for it. */
  channelId?: string;
}

export function readImagineForm(values: SubmissionPayload["view"]["state"]["values"]): FormValues {
  const chosen = (name: string) => readText(toBody(readElement(values, name)["selected_option"])["value"]);
  const [ratio, size, count, model] = ["ratio", "size", "count", "model"].map(chosen);
  const channelId = readText(readElement(values, WHERE)["selected_conversation"]);
  return {
    prompt: readTextArea(values, PROMPT),
    options: { ...(ratio && { ratio }), ...(size && { size }), ...(count && { count }), ...(model && { model }) },
    files: toBodies(readElement(values, REFERENCES)["files"]),
    ...(channelId !== undefined && { channelId }),
  };
}

/** Packs the state under short keys, since Slack keeps 3,000 characters; references that do not fit are dropped. */
function writeContext({ references, isPrivate, ...context }: FormContext): string {
  const { channelId: c, threadTs: t, responseUrl: u, personId: p, basis: b } = context;
  const pack = (kept: readonly AttachmentRef[]) => {
    const r = kept.map(({ id, name, sizeBytes }) => [id, truncate(name, MAX_NAME_CHARS, ""), sizeBytes]);
    return JSON.stringify({ c, t, u, p, o: isPrivate === true ? "only" : undefined, b, r });
  };
  for (let count = references.length; count > 0; count--) {
    const packed = pack(references.slice(0, count));
    if (packed.length <= MAX_METADATA_CHARS) return packed;
  }
  return pack([]);
}

/** Reads what `writeContext` wrote. Throws for anything else. */
export function readContext(metadata: string): FormContext {
  type Packed = Partial<Record<"c" | "t" | "u" | "p" | "o" | "b", string>> & { r: [string, string, number][] };
  const { c, t, u, p = "", o, b, r } = JSON.parse(metadata) as Packed;
  const references = r.map(([id, name, sizeBytes]) => ({ platform: PLATFORM, id, name, sizeBytes }));
  return { channelId: c, threadTs: t, responseUrl: u, personId: p, isPrivate: o === "only", basis: b, references };
}

function describeReferences({ references, basis }: FormContext): Body[] {
  const names = references.map(({ name }) => escapeMarkup(name));
  const all = [...(basis === undefined ? [] : ["the picture itself"]), ...names];
  return all.length === 0 ? [] : [remark(`I will draw from ${all.join(", ")}.`)];
}

function toFileField(maxFiles: number): Body {
  const element = { type: "file_input", filetypes: FILE_TYPES, max_files: maxFiles };
  return field(REFERENCES, "Pictures to go by", element, { optional: true });
}

function toPlaceField(): Body {
  const element = { type: "conversations_select", default_to_current_conversation: true };
  return field(WHERE, "Where should it go?", element);
}

function choice(name: string, label: string, values: readonly string[], chosen: string | undefined): Body[] {
  const element = select(VALUE, values, { placeholder: "As it comes", chosen });
  return element === undefined ? [] : [field(name, label, element, { optional: true })];
}
