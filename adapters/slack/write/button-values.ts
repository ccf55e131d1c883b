import type { Action } from "../../../src/port/events.ts";
import type { Button } from "../../../src/port/sink.ts";

const ACTIONS: readonly string[] = [
  "stop",
  "retry",
  "continue",
  "good",
  "bad",
  "again",
  "vary",
  "edit",
  "upscale",
  "delete",
] satisfies Action[];

/** What a button of a reply does. It stands in the button itself, so that it works in every process and after a restart. */
export type Press = Pick<Button, "action" | "turnId">;

/** The `value` of a button. Its `action_id` is the action alone, or whatever else is unique in the message. */
export function toButtonValue({ action, turnId }: Press): string {
  return `${action}:${turnId}`;
}

/** Undefined for what is no button of a reply. */
export function readButtonValue(value: unknown): Press | undefined {
  if (typeof value !== "string") return undefined;
  const [, action = "", turnId = ""] = /^([a-z]+):(.+)$/s.exec(value) ?? [];
  return ACTIONS.includes(action) ? { action: action as Action, turnId } : undefined;
}
