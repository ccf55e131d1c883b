import type { Arguments } from "./arguments.ts";
import { SlackRefusal } from "./refusal.ts";
import { listOf } from "./shown-text.ts";
import { type Content, emptyContent, type Json, type Workspace } from "./world.ts";

const MAX_BLOCKS = 50;
const MAX_SECTION_CHARS = 3_000;
const MAX_HEADER_CHARS = 150;
/** Maximum length of `markdown_text` in a call, and of all Markdown blocks of a message together. */
export const MAX_MARKDOWN_CHARS = 12_000;
/** Maximum length of all text in the blocks of a message. */
const MAX_BLOCK_TEXT_CHARS = 13_200;
const MAX_BUTTON_CHARS = 75;
const MAX_VALUE_CHARS = 2_000;
const MAX_METADATA_BYTES = 64 * 1024;
/** Maximum length of a post's text. Slack truncates longer posts, but refuses longer updates. */
const MAX_TEXT_CHARS = 40_000;
const MAX_UPDATE_CHARS = 4_000;

/** Reads a message's content from a call. Throws if Slack would refuse the content. Missing fields become empty. */
export function readContent(args: Arguments, call: "post" | "update"): Content {
  const markdown = args.text("markdown_text");
  const blocks = args.list("blocks");
  const text = args.text("text") ?? "";
  const hasOther = text !== "" || blocks.length > 0;
  if (markdown !== undefined && hasOther) throw new SlackRefusal("markdown_text_conflict");
  const attachments = args.list("attachments");
  if (markdown === undefined && !hasOther && attachments.length === 0) throw new SlackRefusal("no_text");
  if ((markdown?.length ?? 0) > MAX_MARKDOWN_CHARS) throw new SlackRefusal("msg_too_long");
  if (call === "update" && text.length > MAX_UPDATE_CHARS) throw new SlackRefusal("msg_too_long");
  checkBlocks(blocks);
  return emptyContent({
    text: text.slice(0, MAX_TEXT_CHARS),
    markdown,
    blocks,
    attachments,
    metadata: readMetadata(args),
  });
}

export function checkBlocks(blocks: readonly Json[]): void {
  if (blocks.length > MAX_BLOCKS)
    throw invalidBlocks(`no more than ${MAX_BLOCKS} items allowed [json-pointer:/blocks]`);
  for (const [index, block] of blocks.entries()) checkBlock(block, index);
  const markdownChars = sum(
    blocks.filter((block) => block["type"] === "markdown").map((block) => textLength(block["text"])),
  );
  const allChars = sum(blocks.map(textChars));
  if (markdownChars > MAX_MARKDOWN_CHARS || allChars > MAX_BLOCK_TEXT_CHARS) {
    throw new SlackRefusal("msg_blocks_too_long");
  }
}

/** Throws if the message shows an image whose file is missing or still being processed. */
export function checkPictures(blocks: readonly Json[], { files }: Workspace, nowMs: number): void {
  for (const [index, { type, slack_file, alt_text }] of blocks.entries()) {
    if (type !== "image") continue;
    const place = `[json-pointer:/blocks/${index}]`;
    if (textLength(alt_text) === 0) throw invalidBlocks(`missing required field: alt_text ${place}`);
    if (slack_file === undefined) continue;
    const file = files.get(String((slack_file as Json)["id"]));
    if (file?.isComplete !== true || file.readyAtMs > nowMs) throw invalidBlocks(`invalid slack file ${place}`);
  }
}

/** Returns a message's metadata, an event type with a flat payload; undefined without any. */
export function readMetadata(args: Arguments): Json | undefined {
  const metadata = args.object("metadata");
  if (metadata === undefined) return undefined;
  if (typeof metadata["event_type"] !== "string" || typeof metadata["event_payload"] !== "object") {
    throw new SlackRefusal("invalid_metadata_format");
  }
  if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES) throw new SlackRefusal("metadata_too_large");
  return metadata;
}

function checkBlock(block: Json, index: number): void {
  const place = `[json-pointer:/blocks/${index}]`;
  if (typeof block["type"] !== "string") throw invalidBlocks(`missing required field: type ${place}`);
  if (block["type"] === "markdown" && typeof block["text"] !== "string") {
    throw invalidBlocks(`missing required field: text ${place}`);
  }
  if (block["type"] === "section") {
    const length = textLength((block["text"] as Json | undefined)?.["text"]);
    if (length === 0 && listOf(block["fields"]).length === 0)
      throw invalidBlocks(`missing required field: text ${place}`);
    if (length > MAX_SECTION_CHARS) throw invalidBlocks(`must be less than 3001 characters ${place}`);
  }
  if (block["type"] === "header" && textLength((block["text"] as Json | undefined)?.["text"]) > MAX_HEADER_CHARS) {
    throw invalidBlocks(`must be less than 151 characters ${place}`);
  }
  const { length: elements } = listOf(block["elements"]);
  if (block["type"] === "context" && (elements === 0 || elements > 10)) {
    throw invalidBlocks(`must have 1 to 10 elements ${place}`);
  }
  if (block["type"] === "actions") checkActions(block, place, 25);
  if (block["type"] === "context_actions") checkContextActions(block, place);
}

/** https://docs.slack.dev/reference/block-kit/blocks/context-actions-block */
function checkContextActions(block: Json, place: string): void {
  checkActions(block, place, 5);
  for (const element of listOf(block["elements"])) {
    const { type } = element;
    if (type !== "feedback_buttons" && type !== "icon_button") throw invalidBlocks(`unsupported type ${place}`);
    if (type === "icon_button") continue;
    for (const name of ["positive_button", "negative_button"]) checkFeedbackButton(element[name], `${name} ${place}`);
  }
}

function checkFeedbackButton(button: unknown, place: string): void {
  const [{ text, value, accessibility_label: label = "-" } = {} as Json] = listOf([button]);
  const [{ type, text: words } = {} as Json] = listOf([text]);
  if (type !== "plain_text" || !isWithin(words, MAX_BUTTON_CHARS)) throw invalidBlocks(`invalid text: ${place}`);
  if (!isWithin(value, MAX_VALUE_CHARS)) throw invalidBlocks(`invalid value: ${place}`);
  if (!isWithin(label, MAX_BUTTON_CHARS)) throw invalidBlocks(`invalid accessibility_label: ${place}`);
}

function isWithin(text: unknown, maxChars: number): boolean {
  return textLength(text) > 0 && textLength(text) <= maxChars;
}

function checkActions(block: Json, place: string, maxElements: number): void {
  const elements = listOf(block["elements"]);
  if (elements.length === 0 || elements.length > maxElements) {
    throw invalidBlocks(`must have 1 to ${maxElements} elements ${place}`);
  }
  const isMisplaced = block["type"] === "actions" && elements.some(({ type }) => type === "feedback_buttons");
  if (isMisplaced) throw invalidBlocks(`unsupported type: feedback_buttons ${place}`);
  const ids = elements.map((element) => element["action_id"]);
  if (new Set(ids).size < ids.length) throw invalidBlocks(`action_id must be unique ${place}`);
  for (const { value } of elements as Array<{ value?: unknown }>) {
    if (textLength(value) > MAX_VALUE_CHARS) throw invalidBlocks(`value must be less than 2001 characters ${place}`);
  }
}

function invalidBlocks(problem: string): SlackRefusal {
  return new SlackRefusal("invalid_blocks", { response_metadata: { messages: [`[ERROR] ${problem}`] } });
}

function textChars(block: Json): number {
  const text = block["text"];
  return typeof text === "object" && text !== null ? textLength((text as Json)["text"]) : textLength(text);
}

function textLength(value: unknown): number {
  return typeof value === "string" ? value.length : 0;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
