import type { z } from "zod";
import { truncate } from "../../../src/text/truncate.ts";
import { type Body, toBody } from "../api/wire.ts";
import { cutMarkup } from "../write/markdown.ts";
import type { HandlerResult } from "./acknowledgement.ts";
import type { SubmissionPayload } from "./payloads.ts";

export const MAX_PROMPT_CHARS = 3_000;
const MAX_OPTION_CHARS = 75;
const MAX_OPTIONS = 100;
const MAX_SECTION_CHARS = 3_000;

export function plain(text: string): Body {
  return { type: "plain_text", text, emoji: true };
}

/** A paragraph in Slack's markup, truncated to the limit. With `verbatim`, Slack adds no links. */
export function section(markup: string, accessory?: Body): Body {
  const text = { type: "mrkdwn", text: cutMarkup(markup, MAX_SECTION_CHARS), verbatim: true };
  return { type: "section", text, ...(accessory && { accessory }) };
}

export function header(text: string): Body {
  return { type: "header", text: plain(truncate(text, 150)) };
}

export function remark(markup: string): Body {
  return { type: "context", elements: [{ type: "mrkdwn", text: cutMarkup(markup, 2_000), verbatim: true }] };
}

/** Undefined if there are no choices. */
export function select(
  actionId: string,
  values: readonly string[],
  { placeholder, chosen }: { placeholder: string; chosen?: string | undefined },
): Body | undefined {
  const options = values
    .filter((value) => value !== "" && value.length <= MAX_OPTION_CHARS)
    .slice(0, MAX_OPTIONS)
    .map((value) => ({ text: plain(value), value }));
  const initial = options.find(({ value }) => value === chosen);
  if (options.length === 0) return undefined;
  return {
    type: "static_select",
    action_id: actionId,
    placeholder: plain(placeholder),
    options,
    ...(initial && { initial_option: initial }),
  };
}

export function note(title: string, text: string): Body {
  return { type: "modal", title: plain(title), close: plain("Close"), blocks: [section(text)] };
}

export interface FormContent {
  id: string;
  title: string;
  submit: string;
  close?: string;
  /** State that Slack stores invisibly with the form; at most 3,000 characters. */
  metadata: string;
  blocks: readonly Body[];
}

export function form({ id, title, submit, close = "Cancel", metadata, blocks }: FormContent): Body {
  const texts = { title: plain(title), submit: plain(submit), close: plain(close) };
  return { type: "modal", callback_id: id, private_metadata: metadata, ...texts, blocks };
}

export const VALUE = "value";

/** A form's field. Submitted values and errors name it by its `block_id`. */
export function field(name: string, label: string, element: Body, more: Body = {}): Body {
  return { type: "input", block_id: name, label: plain(label), element: { action_id: VALUE, ...element }, ...more };
}

export function textArea(maxChars: number, value = ""): Body {
  const shown = value === "" ? {} : { initial_value: truncate(value, maxChars, "") };
  return { type: "plain_text_input", multiline: true, max_length: maxChars, ...shown };
}

/** The element of a field for one line of text. */
export function textLine(maxChars: number, value: string): Body {
  return { ...textArea(maxChars, value), multiline: false };
}

/** Keeps a submitted form open and shows a sentence at each of these fields. */
export function refuseFields(errors: Readonly<Record<string, string>>): HandlerResult {
  return { events: [], response: { response_action: "errors", errors } };
}

type FormState = SubmissionPayload["view"]["state"]["values"];

/** An empty object if the field is absent. */
export function readElement(values: FormState, name: string): Body {
  return toBody(values[name]?.[VALUE]);
}

/** The trimmed text of a submitted field; "" if it is absent. */
export function readTextArea(values: FormState, name: string): string {
  const { value } = readElement(values, name);
  return typeof value === "string" ? value.trim() : "";
}

/** Undefined if another form or an older version stored the state. */
export function readMetadata<T extends z.ZodType>(schema: T, metadata: string): z.infer<T> | undefined {
  try {
    return schema.safeParse(JSON.parse(metadata)).data;
  } catch {
    return undefined;
  }
}
