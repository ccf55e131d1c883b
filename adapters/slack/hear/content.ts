import { describeCard } from "../../../src/text/card.ts";
import { joinLines, joinParagraphs } from "../../../src/text/join.ts";
import { toLine } from "../../../src/text/quote-name.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { type Body, readText, toBodies, toBody } from "../api/wire.ts";

const QUOTE_CHARS = 2_000;
/** Matches an incomplete entity, mention or link at the end of a truncated text. */
const HALF_MARKUP = /(?:&[a-z]{0,3}|<[^<>]*)…$/;
/** Blocks can contain blocks. Real messages are not this deep. */
const MAX_DEPTH = 6;
const COLORS: Readonly<Record<string, number>> = { good: 0x2eb886, warning: 0xdaa038, danger: 0xa30200 };

/**
 * Reads everything that a message shows: its text, blocks, attachments and forwarded messages. The result is text in
 * Slack's markup, with ids for people and channels. Pure.
 */
export function readShown(message: Body): string {
  return joinParagraphs(readOwn(message), ...toBodies(message["attachments"]).map(readAttachment));
}

export function readForwards(message: Body): string {
  return joinParagraphs(
    ...toBodies(message["attachments"])
      .filter((one) => one["is_share"] === true)
      .map(readAttachment),
  );
}

/**
 * A person's own words, including tables that they pasted: Slack puts a table into an attachment or a block, but not
 * into the text. Leaves out all other attachments: forwards, and link previews that Slack adds later.
 */
export function readWritten(message: Body): string {
  return joinParagraphs(readOwn(message), ...toBodies(message["attachments"]).filter(isPasted).map(readAttachment));
}

function isPasted(attachment: Body): boolean {
  const isLinked = ["from_url", "original_url", "is_share", "is_msg_unfurl"].some((name) => Boolean(attachment[name]));
  return !isLinked && toBodies(attachment["blocks"]).length > 0;
}

/**
 * Reads a person's message from its text, and an app's message from its blocks. A person's message without a table
 * contains its words twice: in its text and in one block.
 */
function readOwn(message: Body): string {
  const text = readText(message["text"]) ?? "";
  const blocks = toBodies(message["blocks"]);
  const isWritten = blocks.every(({ type }) => type === "rich_text");
  return (isWritten && text.trim() !== "" ? "" : readBlocks(blocks)) || text;
}

/** https://docs.slack.dev/legacy/legacy-messaging/legacy-secondary-message-attachments */
function readAttachment(attachment: Body): string {
  if (attachment["is_share"] === true || attachment["is_msg_unfurl"] === true) return readForward(attachment);
  const title = plain(attachment["title"]);
  const link = readText(attachment["title_link"]);
  const card = describeCard({
    before: readText(attachment["pretext"]),
    color: toColor(attachment["color"]),
    author: plain(attachment["author_name"]),
    title: title && (link === undefined ? title : `<${link}|${title}>`),
    text: readText(attachment["text"]),
    fields: toBodies(attachment["fields"]).map(({ title, value }) => ({
      name: plain(title) ?? "",
      value: readText(value) ?? "",
    })),
    more: [
      readBlocks(toBodies(attachment["blocks"])),
      readActions(toBodies(attachment["actions"])),
      readText(attachment["image_url"]) === undefined ? "" : "(a picture)",
    ],
    footer: readText(attachment["footer"]),
    at: toTime(attachment["ts"]),
  });
  return isEmptyCard(attachment) ? (plain(attachment["fallback"]) ?? card) : card;
}

function isEmptyCard(attachment: Body): boolean {
  const fields = ["pretext", "title", "text", "author_name", "fields", "blocks", "actions", "footer", "image_url"];
  return fields.every(
    (name) => !attachment[name] || (Array.isArray(attachment[name]) && attachment[name].length === 0),
  );
}

function readForward(attachment: Body): string {
  const inside = toBodies(attachment["message_blocks"]).flatMap(({ message }) => toBodies(toBody(message)["blocks"]));
  const text = readOwn({ text: attachment["text"], blocks: inside });
  const cards = toBodies(attachment["attachments"]).map(readAttachment);
  const names = toBodies(attachment["files"]).map(
    ({ name, title }) => `(a file: ${plain(title) ?? plain(name) ?? "?"})`,
  );
  const words = joinParagraphs(text, ...cards, ...names);
  if (words === "") return plain(attachment["fallback"]) ?? "";
  const isLong = words.length > QUOTE_CHARS;
  const shown = isLong ? truncate(words, QUOTE_CHARS).replace(HALF_MARKUP, "…") : words;
  const author = plain(attachment["author_name"]) ?? plain(attachment["author_subname"]);
  return `Forwarded${author === undefined ? "" : ` from ${toLine(author)}`}:\n${shown.replace(/^/gm, "&gt; ")}`;
}

function readBlocks(blocks: readonly Body[], depth = 0): string {
  if (depth > MAX_DEPTH) return "";
  return joinLines(...blocks.map((block) => readBlock(block, depth))).trim();
}

/** https://docs.slack.dev/reference/block-kit/blocks */
function readBlock(block: Body, depth: number): string {
  switch (block["type"]) {
    case "divider":
    case "context_actions":
      return "";
    case "markdown":
      return escapeText(readText(block["text"]) ?? "");
    case "rich_text":
      return toBodies(block["elements"]).map(readRichPart).join("\n");
    case "context":
      return toBodies(block["elements"]).map(readElement).filter(Boolean).join(" ");
    case "actions":
      return readActions(toBodies(block["elements"]));
    case "image":
      return readElement(block);
    case "table":
    case "data_table":
      return readTable(block["rows"], depth);
    default:
      return readParts(block, depth);
  }
}

/** The names of parts, in the order in which blocks show them. New kinds of blocks usually have the same parts. */
const PARTS = ["title", "caption", "label", "subtitle", "text", "description", "body", "details", "output", "subtext"];
const LISTS = ["fields", "elements", "blocks", "child_blocks", "tasks", "sources", "actions"];

function readParts(block: Body, depth: number): string {
  const link = readText(block["title_url"]) ?? readText(block["url"]);
  const parts = PARTS.map((name) => {
    const text = readNested(block[name], depth);
    return name === "title" && link !== undefined && text !== "" ? `<${link}|${text}>` : text;
  });
  const pictures = ["accessory", "hero_image", "element"].map((name) => readElement(toBody(block[name])));
  return joinLines(...parts, ...LISTS.map((name) => readList(block[name], depth)), ...pictures);
}

function readNested(value: unknown, depth: number): string {
  if (typeof value === "string") return escapeText(value);
  const body = toBody(value);
  return body["type"] === "rich_text" ? readBlock(body, depth + 1) : readElement(body);
}

function readList(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH) return "";
  const items = toBodies(value);
  const buttons = readActions(items.filter(isAction));
  const others = items.filter((item) => !isAction(item));
  return joinLines(
    ...others.map((item) => (isText(item) ? (readText(item["text"]) ?? "") : readBlock(item, depth + 1))),
    buttons,
  );
}

/** A Markdown table whose head is the first row. https://docs.slack.dev/reference/block-kit/blocks/table-block */
function readTable(value: unknown, depth: number): string {
  const rows = (Array.isArray(value) ? value : []).map((row: unknown) => {
    const cells: unknown = Array.isArray(row) ? row : toBody(row)["cells"];
    return (Array.isArray(cells) ? cells : []).map((cell) => toCell(readNested(cell, depth)));
  });
  if (rows.flat().every((cell) => cell === "")) return "";
  const columns = rows.reduce((most, { length }) => Math.max(most, length), 0);
  const lines = rows.map((row) => `| ${Array.from({ length: columns }, (_, index) => row[index] ?? "").join(" | ")} |`);
  const table = [lines[0], `|${" --- |".repeat(columns)}`, ...lines.slice(1)].join("\n");
  // Markdown needs an empty line between a table and the text around it.
  return `\n${table}\n`;
}

/** A cell can contain no line break, and no bar except the one between a link and its label. */
function toCell(text: string): string {
  return text
    .trim()
    .replace(/\s*\n\s*/g, " ")
    .replace(/<[^<>|]*\|?|\|/g, (found) => (found === "|" ? "\\|" : found));
}

function isText({ type }: Body): boolean {
  return type === "mrkdwn" || type === "plain_text" || type === "raw_text";
}

function isAction({ type }: Body): boolean {
  return typeof type === "string" && /^url$|button|select|overflow|picker|checkboxes|radio/.test(type);
}

function readElement(element: Body): string {
  const { type } = element;
  if (type === "image") {
    const words = plain(element["alt_text"]) ?? plain(toBody(element["title"])["text"]);
    return words === undefined ? "(a picture)" : `(a picture: ${words})`;
  }
  if (isAction(element)) return readActions([element]);
  if (type === "raw_number") return readNumber(element["value"]) ?? readText(element["text"]) ?? "";
  const text = readText(element["text"]) ?? "";
  return type === "mrkdwn" ? text : text === "" ? "" : escapeText(text);
}

/** A button with a URL becomes a link. Any other button becomes its label. */
function readActions(elements: readonly Body[]): string {
  const links: string[] = [];
  const labels: string[] = [];
  for (const element of elements) {
    const value = element["text"] ?? element["placeholder"];
    const label = plain(value) ?? plain(toBody(value)["text"]);
    const url = readText(element["url"]);
    if (url !== undefined) links.push(label === undefined ? `<${url}>` : `<${url}|${label}>`);
    else if (label !== undefined) labels.push(label);
  }
  return joinLines(links.join(" · "), labels.length === 0 ? "" : `(buttons: ${labels.join(", ")})`);
}

/** https://docs.slack.dev/reference/block-kit/blocks/rich-text-block */
function readRichPart(part: Body): string {
  const elements = toBodies(part["elements"]);
  switch (part["type"]) {
    case "rich_text_list": {
      const indent = "  ".repeat(Number(part["indent"] ?? 0) || 0);
      const first = (Number(part["offset"] ?? 0) || 0) + 1;
      const isOrdered = part["style"] === "ordered";
      return elements
        .map((item, index) => `${indent}${isOrdered ? `${first + index}.` : "•"} ${readRichPart(item)}`)
        .join("\n");
    }
    case "rich_text_preformatted":
      return `\`\`\`\n${elements.map(readRichElement).join("")}\n\`\`\``;
    case "rich_text_quote":
      return elements.map(readRichElement).join("").replace(/^/gm, "&gt; ");
    default:
      return elements.map(readRichElement).join("");
  }
}

function readRichElement(element: Body): string {
  const text = readText(element["text"]);
  const id = (name: string) => readText(element[name]) ?? "";
  switch (element["type"]) {
    case "link":
      return text === undefined ? `<${id("url")}>` : `<${id("url")}|${escapeText(text)}>`;
    case "user":
      return `<@${id("user_id")}>`;
    case "channel":
      return `<#${id("channel_id")}>`;
    case "usergroup":
      return `<!subteam^${id("usergroup_id")}>`;
    case "broadcast":
      return `<!${id("range")}>`;
    case "emoji":
      return `:${id("name")}:`;
    case "date":
      return escapeText(id("fallback") || (readNumber(element["timestamp"]) ?? ""));
    case "color":
      return id("value");
    default:
      return toBody(element["style"])["code"] === true ? `\`${escapeText(text ?? "")}\`` : escapeText(text ?? "");
  }
}

function readNumber(value: unknown): string | undefined {
  return typeof value === "number" ? String(value) : undefined;
}

function toColor(value: unknown): number | undefined {
  const color = readText(value);
  if (color === undefined) return undefined;
  const [, hex] = /^#?([0-9a-f]{6})$/i.exec(color) ?? [];
  return COLORS[color] ?? (hex === undefined ? undefined : Number.parseInt(hex, 16));
}

/** Converts seconds, as a number or a string of digits, to milliseconds. Undefined for any other value. */
function toTime(value: unknown): number | undefined {
  const seconds = Number(value);
  return value === undefined || value === null || value === "" || Number.isNaN(seconds) ? undefined : seconds * 1_000;
}

/** Text without markup, escaped as in a message. Undefined if it is empty. */
function plain(value: unknown): string | undefined {
  const text = readText(value);
  return text === undefined ? undefined : escapeText(text);
}

/** Escapes plain text from blocks and cards, because Slack escapes only a message's text. */
function escapeText(text: string): string {
  return text
    .replace(/&(?!(?:amp|lt|gt);)/g, "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
