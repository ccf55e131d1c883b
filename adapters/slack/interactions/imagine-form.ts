import type { ImagineMenu, ImagineOptions } from "../../../src/port/catalogue.ts";
import type { AttachmentRef } from "../../../src/port/events.ts";
import type { Body } from "../api/wire.ts";
import { PLATFORM } from "../ids.ts";
import { escapeMarkup, field, MAX_PROMPT_CHARS, plain, remark, select } from "./views.ts";

/** `callback_id` of the form for pictures. */
export const IMAGINE_FORM = "imagine_form";
export const PROMPT = "prompt";
export const WHERE = "where";
const REFERENCES = "references";
const VALUE = "value";
/** Slack takes so many files in one field, of ten megabytes each. */
const MAX_FILES = 10;
const MAX_METADATA_CHARS = 3_000;
const MAX_NAME_CHARS = 60;
const FILE_TYPES = ["png", "jpg", "jpeg", "gif", "webp", "heic"];

/** State of a form until it is sent: Slack keeps it with the form, unseen. */
export interface FormContext {
  /** Absent: the form asks where the picture goes. */
  channelId?: string | undefined;
  threadTs?: string | undefined;
  responseUrl?: string | undefined;
  /** The person whose form it is, by Slack's own id: nobody else can send it. */
  personId: string;
  /** Only this person sees what comes of it. */
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
      type: "plain_text_input",
      action_id: VALUE,
      multiline: true,
      max_length: MAX_PROMPT_CHARS,
      ...(prompt !== "" && { initial_value: prompt.slice(0, MAX_PROMPT_CHARS) }),
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
  return {
    type: "modal",
    callback_id: IMAGINE_FORM,
    private_metadata: writeContext(context),
    title: plain("Draw a picture"),
    submit: plain("Draw"),
    close: plain("Cancel"),
    blocks,
  };
}

/** The values of a form that was sent. Files are as Slack describes them. */
export interface FormValues {
  prompt: string;
  options: ImagineOptions;
  files: readonly Body[];
  /** Chosen in the form, where it asks for it. */
  channelId?: string;
}

export function readImagineForm(values: Readonly<Record<string, Readonly<Record<string, unknown>>>>): FormValues {
  const element = (name: string) => (values[name]?.[VALUE] ?? {}) as Record<string, unknown>;
  const chosen = (name: string) => (element(name)["selected_option"] as { value?: string } | null)?.value;
  const [ratio, size, count, model] = ["ratio", "size", "count", "model"].map(chosen);
  const prompt = element(PROMPT)["value"];
  const files = element(REFERENCES)["files"];
  const channelId = element(WHERE)["selected_conversation"];
  return {
    prompt: typeof prompt === "string" ? prompt.trim() : "",
    options: { ...(ratio && { ratio }), ...(size && { size }), ...(count && { count }), ...(model && { model }) },
    files: Array.isArray(files) ? (files as Body[]) : [],
    ...(typeof channelId === "string" && { channelId }),
  };
}

/** Short keys, because three thousand characters are all there is. */
function writeContext({
  channelId,
  threadTs,
  responseUrl,
  personId,
  isPrivate,
  basis,
  references,
}: FormContext): string {
  const pack = (kept: readonly AttachmentRef[]) =>
    JSON.stringify({
      c: channelId,
      t: threadTs,
      u: responseUrl,
      p: personId,
      o: isPrivate === true ? "only" : undefined,
      b: basis,
      r: kept.map(({ id, name, sizeBytes }) => [id, name.slice(0, MAX_NAME_CHARS), sizeBytes]),
    });
  for (let count = references.length; count > 0; count--) {
    const packed = pack(references.slice(0, count));
    if (packed.length <= MAX_METADATA_CHARS) return packed;
  }
  return pack([]);
}

/** Reads what `writeContext` wrote. Throws for anything else. */
export function readContext(metadata: string): FormContext {
  const { c, t, u, p, o, b, r } = JSON.parse(metadata) as Record<
    "c" | "t" | "u" | "p" | "o" | "b",
    string | undefined
  > & {
    r: [id: string, name: string, sizeBytes: number][];
  };
  const references = r.map(([id, name, sizeBytes]) => ({ platform: PLATFORM, id, name, sizeBytes }));
  return {
    channelId: c,
    threadTs: t,
    responseUrl: u,
    personId: p ?? "",
    isPrivate: o === "only",
    basis: b,
    references,
  };
}

function describeReferences({ references, basis }: FormContext): Body[] {
  const names = references.map(({ name }) => escapeMarkup(name));
  const all = [...(basis === undefined ? [] : ["the picture itself"]), ...names];
  return all.length === 0 ? [] : [remark(`I will draw from ${all.join(", ")}.`)];
}

function toFileField(maxFiles: number): Body {
  const element = { type: "file_input", action_id: VALUE, filetypes: FILE_TYPES, max_files: maxFiles };
  return field(REFERENCES, "Pictures to go by", element, { optional: true });
}

function toPlaceField(): Body {
  const element = { type: "conversations_select", action_id: VALUE, default_to_current_conversation: true };
  return field(WHERE, "Where should it go?", element);
}

function choice(name: string, label: string, values: readonly string[], chosen: string | undefined): Body[] {
  const element = select(VALUE, values, { placeholder: "As it comes", chosen });
  return element === undefined ? [] : [field(name, label, element, { optional: true })];
}
