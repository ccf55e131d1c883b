import type { Body } from "../api/wire.ts";

/** Slack's limits for the parts of a view, in characters. */
export const MAX_PROMPT_CHARS = 3_000;
const MAX_OPTION_CHARS = 75;
const MAX_OPTIONS = 100;
const MAX_SECTION_CHARS = 3_000;

/** Letters that Slack reads as markup in `mrkdwn`, written so that they are only letters. */
export function escapeMarkup(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

export function plain(text: string): Body {
  return { type: "plain_text", text, emoji: true };
}

/** A paragraph in Slack's own markup, cut where it ends. `verbatim`: nothing in it becomes a link by itself. */
export function section(markup: string, accessory?: Body): Body {
  const text = { type: "mrkdwn", text: cutMarkup(markup, MAX_SECTION_CHARS), verbatim: true };
  return { type: "section", text, ...(accessory && { accessory }) };
}

export function header(text: string): Body {
  return { type: "header", text: plain(text.slice(0, 150)) };
}

/** A line in small letters. */
export function remark(markup: string): Body {
  return { type: "context", elements: [{ type: "mrkdwn", text: cutMarkup(markup, 2_000), verbatim: true }] };
}

/** A choice from words. Undefined where there is nothing to choose from. */
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

/** A form without fields, which only says something. */
export function note(title: string, text: string): Body {
  return { type: "modal", title: plain(title), close: plain("Close"), blocks: [section(text)] };
}

/** A field of a form. `block_id` names it in what is sent, and in what is wrong with it. */
export function field(name: string, label: string, element: Body, more: Body = {}): Body {
  return { type: "input", block_id: name, label: plain(label), element, ...more };
}

/** Never ends within an escaped letter. */
function cutMarkup(markup: string, maxChars: number): string {
  if (markup.length <= maxChars) return markup;
  const cut = markup.slice(0, maxChars - 1).replace(/&[a-z]{0,3}$|[\uD800-\uDBFF]$/, "");
  return `${cut}…`;
}
