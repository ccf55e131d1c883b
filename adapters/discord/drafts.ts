import { ButtonStyle, ComponentType, MessageFlags } from "discord.js";
import type { Action, Button, Draft, PressedAction } from "../../src/adapter.ts";
import { countChars, toDiscordMarkdown } from "./markdown.ts";

/** Longest message, in code points. */
export const MAX_LENGTH = 2_000;
const MAX_LABEL = 80;
const ACTIONS: readonly string[] = ["stop", "retry", "continue"] satisfies Action[];

/** What every post and every edit carries, whatever its text. */
export interface MessageBody {
  content: string;
  /** Without it Discord would notify whomever the model names, on edits too. */
  allowed_mentions: { parse: []; replied_user: false };
  /** A preview would be fetched for every address the model writes, whoever put it there. */
  flags: typeof MessageFlags.SuppressEmbeds;
  components: unknown[];
}

/** What the buttons of a reply carry besides what they do. */
export interface ButtonContext {
  /** The message at the root of the conversation, where the channel alone does not name it. */
  root?: string | undefined;
  /** Tells what a message was made for, where it has no other place for that. */
  mark?: string | undefined;
}

export function toMessageBody(draft: Draft, context: ButtonContext): MessageBody {
  return {
    content: toContent(draft.markdown),
    allowed_mentions: { parse: [], replied_user: false },
    flags: MessageFlags.SuppressEmbeds,
    components: toComponents(draft.buttons, context),
  };
}

/** A text that only grows too long by being rewritten is sent as it is. */
function toContent(markdown: string): string {
  const content = toDiscordMarkdown(markdown);
  return countChars(content) > MAX_LENGTH && countChars(markdown) <= MAX_LENGTH ? markdown : content;
}

export function lengthOfBody({ content }: MessageBody): number {
  return countChars(content);
}

function toComponents(buttons: readonly Button[], context: ButtonContext): unknown[] {
  if (buttons.length === 0) return [];
  const components = buttons.slice(0, 5).map(({ action, turnId, label }) => ({
    type: ComponentType.Button,
    style: ButtonStyle.Secondary,
    label: label.slice(0, MAX_LABEL),
    custom_id: toCustomId({ action, turnId, ...context }),
  }));
  return [{ type: ComponentType.ActionRow, components }];
}

/** What a button does. It stands in the button itself, so that it works in every process and after a restart. */
export interface Press extends ButtonContext {
  action: PressedAction;
  turnId: string;
}

export function toCustomId({
  action,
  turnId,
  root = "",
  mark = "",
}: ButtonContext & Pick<Button, "action" | "turnId">): string {
  return [action, turnId, root, mark].join(":").replace(/:+$/, "");
}

/** Undefined for a button that is not ours. */
export function readCustomId(customId: string): Press | undefined {
  const [action = "", turnId = "", root = "", mark = ""] = customId.split(":");
  if (!ACTIONS.includes(action) || turnId === "") return undefined;
  return { action: action as PressedAction, turnId, root: root || undefined, mark: mark || undefined };
}

/** The ids of all buttons of a message as Discord sends it. */
export function readCustomIds(components: unknown): string[] {
  if (!Array.isArray(components)) return [];
  return components.flatMap((component: { custom_id?: unknown; components?: unknown }) => [
    ...(typeof component.custom_id === "string" ? [component.custom_id] : []),
    ...readCustomIds(component.components),
  ]);
}
