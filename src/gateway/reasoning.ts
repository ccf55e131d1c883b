import type { ChunkChoice } from "./chunks.ts";
import { isRecord } from "./failures.ts";

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

/** The tags that models write around what they think. */
const OPENINGS = ["<think>", "<thinking>", "<thought>", "<reasoning>"];
const LONGEST_OPENING = Math.max(...OPENINGS.map((tag) => tag.length));
/** More white space than this before a tag, and it is text. */
const MAX_HELD_CHARS = 64;

/** Moves what stands in such tags at the beginning of one answer out of its text, however the deltas cut it. */
export interface ThoughtFilter {
  /** Changes the choice in place. What may be the beginning of a tag is kept back until that is decided. */
  apply(choice: ChunkChoice): void;
  /** Returns the text that was kept back, once nothing more comes; "" for most answers. */
  rest(): string;
}

/**
 * Only tags that the answer begins with count, several in a row as well. A closing tag without an opening one stays
 * where it is: nobody knows what stands before it. Behind an opening tag that is never closed all is thought.
 */
export function createThoughtFilter(): ThoughtFilter {
  /** The tag that ends what is being thought. */
  let closing: string | undefined;
  let held = "";
  let hasThought = false;
  let isAnswer = false;

  /** Finds out what `held` begins with: a tag, which is taken off, text, or something that only the rest will tell. */
  function open(): void {
    const start = held.trimStart();
    const word = start.slice(0, LONGEST_OPENING).toLowerCase();
    const tag = OPENINGS.find((opening) => word.startsWith(opening));
    if (tag !== undefined) {
      closing = `</${tag.slice(1)}`;
      held = start.slice(tag.length);
    } else {
      isAnswer = held.length > MAX_HELD_CHARS || !OPENINGS.some((opening) => opening.startsWith(word));
    }
  }

  /** Takes what is thought from the front of `held`, but for what may be the beginning of the closing tag. */
  function takeThought(tag: string): { thought: string; isOver: boolean } {
    const end = held.search(new RegExp(tag, "i"));
    const last = held.lastIndexOf("<");
    const isOpen = end === -1 && last !== -1 && tag.startsWith(held.slice(last).toLowerCase());
    const thought = held.slice(0, isOpen ? last : end === -1 ? held.length : end);
    held = held.slice(thought.length + (end === -1 ? 0 : tag.length));
    return { thought, isOver: end !== -1 };
  }

  /** Takes off all that `held` begins with and that is no answer. */
  function takeThoughts(): string {
    if (closing === undefined) open();
    let thoughts = "";
    while (closing !== undefined) {
      const { thought, isOver } = takeThought(closing);
      thoughts += thought;
      if (!isOver) break;
      closing = undefined;
      hasThought = true;
      open();
    }
    return thoughts;
  }

  function takeText(): string {
    if (closing !== undefined) return "";
    const text = hasThought ? held.trimStart() : held;
    held = "";
    return text;
  }

  return {
    apply({ index, delta, finish_reason }) {
      if (isAnswer || index !== 0) return;
      if (delta.content) {
        held += delta.content;
        const thoughts = takeThoughts();
        if (thoughts !== "") delta.reasoning = (delta.reasoning ?? "") + thoughts;
        delta.content = isAnswer ? takeText() : "";
      }
      if (held !== "" && (finish_reason || delta.tool_calls !== undefined)) {
        delta.content = (delta.content ?? "") + takeText();
      }
    },
    rest: takeText,
  };
}
