import type { Button, Draft } from "../../src/adapter.ts";
import { SinkError } from "../../src/errors.ts";
import { PLATFORM, toMark } from "./ids.ts";
import {
  isNearlyFull,
  lengthOfMarkdown,
  MAX_LENGTH,
  toFallback,
  toSettledMarkdown,
  toSlackMarkdown,
} from "./markdown.ts";
import { toButtonValue } from "./presses.ts";

const MAX_LABEL = 75;
const MAX_BUTTONS = 25;
const FEEDBACK = "feedback";
const ENDING = "An answer without words.";

export type Block = Readonly<Record<string, unknown>>;

/** What a message shows. */
export interface MessageBody {
  blocks: readonly Block[];
  /** For notifications, and wherever blocks are not shown. */
  text: string;
}

/** Throws a `SinkError` for a draft that is longer than what was promised to fit. */
export function toMessageBody(draft: Draft, looks: ButtonLooks = {}): MessageBody {
  checkLength(draft);
  const { buttons } = draft;
  const markdown = toShown(draft);
  const blocks = markdown.trim() === "" ? [] : [toTextBlock(markdown)];
  return { blocks: [...blocks, ...toButtonBlocks(buttons, looks)], text: toFallback(markdown) || ENDING };
}

/** A message that is nearly full shows of a growing text what will stay there, as a stream does. */
function toShown({ markdown, source, streaming }: Draft): string {
  return streaming && source !== undefined && isNearlyFull(source) ? toSettledMarkdown(source) : markdown;
}

export function checkLength({ markdown }: Draft): void {
  const length = lengthOfMarkdown(markdown);
  if (length <= MAX_LENGTH) return;
  throw new SinkError("rejected", `The message has ${length} bytes as Slack counts it; ${MAX_LENGTH} fit.`);
}

/** The block that shows tables, code, links and lists as models write them. */
function toTextBlock(markdown: string): Block {
  return { type: "markdown", text: toSlackMarkdown(markdown) };
}

export interface ButtonLooks {
  /** Judging has Slack's own buttons for it, which not every workspace takes. */
  hasFeedbackButtons?: boolean;
}

export function toButtonBlocks(buttons: readonly Button[], { hasFeedbackButtons = false }: ButtonLooks = {}): Block[] {
  const judging = hasFeedbackButtons ? readJudging(buttons) : undefined;
  const others = buttons.filter((button) => judging === undefined || !isJudging(button));
  const elements = others
    .slice(0, MAX_BUTTONS)
    .map((button) => ({ type: "button", ...toPlainButton(button), action_id: button.action }));
  return [
    ...(elements.length === 0 ? [] : [{ type: "actions", elements }]),
    ...(judging === undefined ? [] : [toFeedbackBlock(judging)]),
  ];
}

/** Whether a message has something that Slack has buttons of its own for. */
export function hasJudging(buttons: readonly Button[]): boolean {
  return readJudging(buttons) !== undefined;
}

interface Judging {
  good: Button;
  bad: Button;
}

function readJudging(buttons: readonly Button[]): Judging | undefined {
  const [good, bad] = ["good", "bad"].map((action) => buttons.find((button) => button.action === action));
  return good === undefined || bad === undefined ? undefined : { good, bad };
}

function isJudging({ action }: Button): boolean {
  return action === "good" || action === "bad";
}

/** https://docs.slack.dev/reference/block-kit/block-elements/feedback-buttons-element */
function toFeedbackBlock({ good, bad }: Judging): Block {
  const buttons = { positive_button: toPlainButton(good), negative_button: toPlainButton(bad) };
  return { type: "context_actions", elements: [{ type: "feedback_buttons", action_id: FEEDBACK, ...buttons }] };
}

function toPlainButton(button: Button): { text: Block; value: string } {
  return {
    text: { type: "plain_text", text: button.label.slice(0, MAX_LABEL) },
    value: toButtonValue(button),
  };
}

/** Carried by every message, unseen, so that it is found again by what it was posted for. */
export function toMetadata(nonce: string): Block {
  return { event_type: `${PLATFORM}_reply`, event_payload: { mark: toMark(nonce) } };
}

/** What a message was posted for; undefined for one that does not say. */
export function readMark(message: Readonly<Record<string, unknown>>): string | undefined {
  const { event_payload } = (message["metadata"] ?? {}) as { event_payload?: { mark?: unknown } };
  return typeof event_payload?.mark === "string" ? event_payload.mark : undefined;
}
