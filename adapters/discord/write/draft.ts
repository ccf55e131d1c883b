import { ButtonStyle, ComponentType, MessageFlags } from "discord.js";
import type { Action } from "../../../src/port/events.ts";
import type { Button, Draft, Step } from "../../../src/port/sink.ts";
import { describeTime, foldSteps } from "../../../src/port/steps.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { MAX_LENGTH, toDiscordMarkdown } from "./markdown.ts";

const MAX_LABEL = 80;
const MAX_CUSTOM_ID = 100;
const ROW = 5;
const MAX_ROWS = 5;
const MAX_STEPS = 4;
const MAX_STEP_CHARS = 80;
const STEP_SIGNS = { running: "⏳", done: "✅", failed: "❌" } as const satisfies Record<Step["state"], string>;
const STYLES: Readonly<Record<Action, ButtonStyle>> = {
  stop: ButtonStyle.Secondary,
  retry: ButtonStyle.Secondary,
  continue: ButtonStyle.Secondary,
  regenerate: ButtonStyle.Secondary,
  show: ButtonStyle.Secondary,
  explain: ButtonStyle.Secondary,
  approve: ButtonStyle.Success,
  always: ButtonStyle.Secondary,
  deny: ButtonStyle.Danger,
  rerun: ButtonStyle.Danger,
  good: ButtonStyle.Secondary,
  bad: ButtonStyle.Secondary,
  again: ButtonStyle.Secondary,
  vary: ButtonStyle.Secondary,
  edit: ButtonStyle.Secondary,
  upscale: ButtonStyle.Secondary,
  delete: ButtonStyle.Danger,
  schedule: ButtonStyle.Success,
  reschedule: ButtonStyle.Secondary,
  unschedule: ButtonStyle.Danger,
  pause: ButtonStyle.Secondary,
  resume: ButtonStyle.Secondary,
};

export interface MessageBody {
  content: string;
  /** Keeps Discord from notifying the users whom the model mentions, even in an edit. */
  allowed_mentions: { parse: []; replied_user: false };
  /** Turns previews off: Discord would fetch every URL that the model writes, including injected ones. */
  flags: typeof MessageFlags.SuppressEmbeds;
  components: unknown[];
}

export interface ButtonContext {
  /** Id of the conversation's first message; undefined if the channel alone identifies the conversation. */
  root?: string | undefined;
  /** Identifies the post that created the message; undefined if something else in the message does. */
  mark?: string | undefined;
}

export function toMessageBody(draft: Draft, context: ButtonContext): MessageBody {
  return {
    content: toContent(draft),
    allowed_mentions: { parse: [], replied_user: false },
    flags: MessageFlags.SuppressEmbeds,
    components: toComponents(draft.buttons, context),
  };
}

/** Sends the text unconverted if the conversion makes it too long, and without steps if they do not fit. */
function toContent({ markdown, streaming, steps = [] }: Draft): string {
  const rewritten = toDiscordMarkdown(markdown);
  const content = rewritten.length > MAX_LENGTH && markdown.length <= MAX_LENGTH ? markdown : rewritten;
  const ended = steps.length === 0 ? [] : [`-# ${foldSteps(steps)}`];
  const lines = streaming ? steps.slice(-MAX_STEPS).map(toStepLine) : ended;
  const whole = [...lines, content].join("\n");
  return whole.length > MAX_LENGTH ? content : whole;
}

/** Small print: https://support.discord.com/hc/en-us/articles/210298617 */
function toStepLine(step: Step): string {
  const words = truncate(step.title.replace(/[\\`*_~|<>[\]()#@]/g, ""), MAX_STEP_CHARS);
  return `-# ${STEP_SIGNS[step.state]} ${[words, describeTime(step)].filter(Boolean).join(", ")}`;
}

export function lengthOfBody({ content }: MessageBody): number {
  return content.length;
}

function toComponents(buttons: readonly Button[], context: ButtonContext): unknown[] {
  const components = buttons.slice(0, ROW * MAX_ROWS).map(({ action, turnId, label }) => ({
    type: ComponentType.Button,
    style: STYLES[action],
    label: truncate(label, MAX_LABEL),
    custom_id: toCustomId({ action, turnId, ...context }),
  }));
  const rows = Array.from({ length: Math.ceil(components.length / ROW) }, (_, row) => row * ROW);
  return rows.map((first) => ({
    type: ComponentType.ActionRow,
    components: components.slice(first, first + ROW),
  }));
}

/** A pressed button, read from the button's id, so that it works in every process and after a restart. */
export interface Press extends ButtonContext {
  action: Action;
  turnId: string;
}

/** At most 100 characters. Leaves out parts that do not fit: first the mark, then the root. */
export function toCustomId({
  action,
  turnId,
  root = "",
  mark = "",
}: ButtonContext & Pick<Button, "action" | "turnId">): string {
  const parts = [action, turnId, root, mark];
  while (parts.length > 2 && parts.join(":").length > MAX_CUSTOM_ID) parts.pop();
  return parts.join(":").replace(/:+$/, "");
}

/** Undefined for a button that is not the bot's. */
export function readCustomId(customId: string): Press | undefined {
  const [action = "", turnId = "", root = "", mark = ""] = customId.split(":");
  if (!isAction(action) || turnId === "") return undefined;
  return { action, turnId, root: root || undefined, mark: mark || undefined };
}

function isAction(name: string): name is Action {
  return Object.hasOwn(STYLES, name);
}

export function readCustomIds(components: unknown): string[] {
  if (!Array.isArray(components)) return [];
  return components.flatMap((component: { custom_id?: unknown; components?: unknown }) => [
    ...(typeof component.custom_id === "string" ? [component.custom_id] : []),
    ...readCustomIds(component.components),
  ]);
}
