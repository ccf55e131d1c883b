import { isRecord } from "./json.ts";

/**
 * Reads a model's thoughts before its answer. The interface does not define them, yet servers send them: in fields of
 * their own, or in tags at the beginning of the answer. Both become `reasoning`, and none of it stays in the text.
 */

/** The names that servers have for the field, those first that hold nothing but text. */
const FIELDS = ["reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks"] as const;
/** Parts hold parts; deeper than this there is no text. */
const MAX_DEPTH = 4;

/** Reads what a message, whole or a fragment, thinks: undefined for nothing, "" for what its server keeps to itself. */
export function readReasoning(message: Record<string, unknown>): string | undefined {
  let isThinking = false;
  for (const name of FIELDS) {
    const value = message[name];
    const text = textIn(value, MAX_DEPTH);
    if (text !== "") return text;
    isThinking ||= Array.isArray(value) ? value.length > 0 : isRecord(value);
  }
  return isThinking ? "" : undefined;
}

function textIn(value: unknown, depth: number): string {
  if (typeof value === "string") return value;
  if (depth === 0) return "";
  if (Array.isArray(value)) return value.map((part) => textIn(part, depth - 1)).join("");
  if (!isRecord(value)) return "";
  return textIn(value.text ?? value.summary ?? value.thinking ?? value.reasoning ?? value.content, depth - 1);
}
