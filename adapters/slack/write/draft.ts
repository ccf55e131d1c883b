import { SinkError } from "../../../src/port/errors.ts";
import { ACTIONS } from "../../../src/port/events.ts";
import type { Button, Draft, Step } from "../../../src/port/sink.ts";
import { foldSteps } from "../../../src/port/steps.ts";
import { readSmallPrint } from "../../../src/text/sources.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { codeOf } from "../api/error.ts";
import { type Body, readText, toBodies, toBody } from "../api/wire.ts";
import { PLATFORM, toFingerprint } from "../ids.ts";
import {
  escapeMarkup,
  isNearlyFull,
  lengthOfMarkdown,
  MAX_LENGTH,
  toFallback,
  toSettledMarkdown,
  toSlackMarkdown,
} from "./markdown.ts";

const MAX_LABEL = 75;
const MAX_BUTTONS = 25;
const FEEDBACK = "feedback";
const ENDING = "An answer without text.";

export type Block = Readonly<Record<string, unknown>>;

export interface MessageBody {
  blocks: readonly Block[];
  /** Shown in notifications, and where Slack shows no blocks. */
  text: string;
}

/** Throws a `SinkError` if the draft exceeds the sink's limit. */
export function toMessageBody(draft: Draft, looks: ButtonLooks = {}): MessageBody {
  checkLength(draft);
  const { buttons, streaming, steps = [] } = draft;
  const markdown = readSmallPrint(toShown(draft)).text;
  const blocks = markdown.trim() === "" ? [] : [toTextBlock(markdown)];
  const small = [...toSourceBlocks(draft), ...(streaming ? [] : toFoldBlocks(steps))];
  return { blocks: [...blocks, ...small, ...toButtonBlocks(buttons, looks)], text: toFallback(markdown) || ENDING };
}

const MAX_SMALL_CHARS = 3_000;

export function toSourceBlocks({ markdown }: Draft): Block[] {
  const lines = readSmallPrint(markdown).lines.map(({ number, label, url }) => {
    return `${number}. <${escapeMarkup(url)}|${escapeMarkup(label)}>`;
  });
  while (lines.join("\n").length > MAX_SMALL_CHARS) lines.pop();
  if (lines.length === 0) return [];
  return [{ type: "context", elements: [{ type: "mrkdwn", text: lines.join("\n"), verbatim: true }] }];
}

/** One line of small print under the text, for steps that no cards show. */
export function toFoldBlocks(steps: readonly Step[]): Block[] {
  if (steps.length === 0) return [];
  return [{ type: "context", elements: [{ type: "plain_text", text: foldSteps(steps) }] }];
}

/** If a growing message is nearly full, shows only the text that will stay in it, as a stream does. */
function toShown({ markdown, source, streaming }: Draft): string {
  return streaming && source !== undefined && isNearlyFull(source) ? toSettledMarkdown(source) : markdown;
}

export function checkLength({ markdown }: Draft): void {
  const length = lengthOfMarkdown(markdown);
  if (length <= MAX_LENGTH) return;
  throw new SinkError("rejected", `The message has ${length} bytes by Slack's count; the limit is ${MAX_LENGTH}.`);
}

function toTextBlock(markdown: string): Block {
  return { type: "markdown", text: toSlackMarkdown(markdown) };
}

export interface ButtonLooks {
  /** Uses Slack's own feedback buttons, which not every workspace supports. */
  hasFeedbackButtons?: boolean;
}

export function toButtonBlocks(buttons: readonly Button[], { hasFeedbackButtons = false }: ButtonLooks = {}): Block[] {
  const feedback = hasFeedbackButtons ? readFeedback(buttons) : undefined;
  const others = buttons.filter((button) => feedback === undefined || !isFeedback(button));
  const elements = others
    .slice(0, MAX_BUTTONS)
    .map((button, index) => ({ type: "button", ...toPlainButton(button), action_id: toActionId(others, index) }));
  return [
    ...(elements.length === 0 ? [] : [{ type: "actions", elements }]),
    ...(feedback === undefined ? [] : [toFeedbackBlock(feedback)]),
  ];
}

/** Slack rejects a message in which two buttons have the same id. */
function toActionId(buttons: readonly Button[], index: number): string {
  const action = buttons[index]?.action ?? "";
  const before = buttons.slice(0, index).filter((button) => button.action === action).length;
  return before === 0 ? action : `${action}:${before}`;
}

export function hasFeedback(buttons: readonly Button[]): boolean {
  return readFeedback(buttons) !== undefined;
}

interface FeedbackButtons {
  good: Button;
  bad: Button;
}

function readFeedback(buttons: readonly Button[]): FeedbackButtons | undefined {
  const [good, bad] = ["good", "bad"].map((action) => buttons.find((button) => button.action === action));
  return good === undefined || bad === undefined ? undefined : { good, bad };
}

function isFeedback({ action }: Button): boolean {
  return action === "good" || action === "bad";
}

/** https://docs.slack.dev/reference/block-kit/block-elements/feedback-buttons-element */
function toFeedbackBlock({ good, bad }: FeedbackButtons): Block {
  const buttons = { positive_button: toPlainButton(good), negative_button: toPlainButton(bad) };
  return { type: "context_actions", elements: [{ type: "feedback_buttons", action_id: FEEDBACK, ...buttons }] };
}

function toPlainButton(button: Button): { text: Block; value: string } {
  return {
    text: { type: "plain_text", text: truncate(button.label, MAX_LABEL) },
    value: toButtonValue(button),
  };
}

export interface MessageFiles {
  ids: readonly string[];
  /** The earlier message that shows the files. Absent if this message shows them itself. */
  sharedTs?: string;
}

/**
 * The invisible metadata of every message: the mark by which the bot finds the message and its files later, and how
 * much of a text the message shows.
 */
export function toMetadata(
  mark: string,
  { draft, messageFiles }: { draft?: Draft; messageFiles?: MessageFiles | undefined } = {},
): Block {
  const { ids = [], sharedTs } = messageFiles ?? {};
  const files = {
    ...(ids.length > 0 && { files: ids.join(" ") }),
    ...(sharedTs !== undefined && { shared: sharedTs }),
  };
  const look = draft === undefined ? {} : toLook(draft);
  return { event_type: `${PLATFORM}_reply`, event_payload: { mark, ...look, ...files } };
}

function toLook(draft: Draft): Block {
  const { source = draft.markdown, streaming } = draft;
  // A message that is nearly full does not show its whole text.
  return streaming && isNearlyFull(source)
    ? {}
    : { length: source.length, text: toFingerprint(source), is_end: !streaming };
}

export interface ShownPart {
  /** The end of the shown part in its source, in UTF-16 units; 0 if the message shows another text. */
  length: number;
  isAll: boolean;
}

/** Undefined if the metadata does not say how much the message shows. */
export function readShownPart(message: Body, { source, markdown, streaming }: Draft): ShownPart | undefined {
  const wanted = source ?? markdown;
  const { length, text, is_end: isEnd } = readPayload(message);
  if (typeof length !== "number" || typeof text !== "string") return undefined;
  if (toFingerprint(wanted.slice(0, length)) !== text) return { length: 0, isAll: false };
  return { length, isAll: length === wanted.length && isEnd === !streaming };
}

/** The mark from the nonce with which the message was posted. Undefined if the message has none. */
export function readMark(message: Body): string | undefined {
  return readText(readPayload(message)["mark"]);
}

/** The files of one of the bot's messages, however they are attached. */
export function readMessageFiles(message: Body): MessageFiles {
  const { files, shared } = readPayload(message);
  const attached = toBodies(message["files"]).map(({ id }) => id);
  const inside = toBodies(message["blocks"]).map(({ slack_file }) => toBody(slack_file)["id"]);
  const before = typeof files === "string" ? files.split(" ") : [];
  const ids = [...attached, ...inside, ...before].filter((id) => typeof id === "string");
  return { ids: [...new Set(ids)], ...(typeof shared === "string" && { sharedTs: shared }) };
}

function readPayload(message: Body): Body {
  return toBody(toBody(message["metadata"])["event_payload"]);
}

/** The button itself contains its action and turn, so it works in every process and after a restart. */
export type ButtonValue = Pick<Button, "action" | "turnId">;

/** A button's `value`. The `action_id` only needs to be unique in the message. */
export function toButtonValue({ action, turnId }: ButtonValue): string {
  return `${action}:${turnId}`;
}

/** Undefined for any other button. */
export function readButtonValue(value: unknown): ButtonValue | undefined {
  if (typeof value !== "string") return undefined;
  const [, action = "", turnId = ""] = /^([a-z]+):(.+)$/s.exec(value) ?? [];
  const known = ACTIONS.find((one) => one === action);
  return known === undefined ? undefined : { action: known, turnId };
}

/** True if Slack refused a call because of a block in it. */
export function isBlockRefusal(error: unknown): boolean {
  return codeOf(error).startsWith("invalid_blocks");
}
