import { createPlaceOf } from "./call-places.ts";
import type { ChatCompletionChunk, Delta, Usage } from "./chunks.ts";
import { isRecord } from "./failures.ts";

/** Reads one event's JSON as a chunk; undefined when it is none. */
export type ReadChunk = (value: unknown) => ChatCompletionChunk | undefined;

/**
 * Reads the chunks of one answer. What servers do differently is made the same: missing `choices`, other choices than
 * the one that was asked for, text in parts, refusals, empty ids and names in later fragments, calls without an index,
 * arguments as an object. Chunks are changed in place, because there are thousands of them.
 */
export function createReadChunk(): ReadChunk {
  const placeOf = createPlaceOf();
  let hasDeltas = false;

  function fixCall(call: unknown): boolean {
    if (!isRecord(call)) return false;
    if (typeof call.id !== "string" || call.id === "") delete call.id;
    if (!fixFunction(call)) return false;
    const { name, arguments: args } = isRecord(call.function) ? call.function : {};
    const place = placeOf({ index: call.index, id: toText(call.id), name: toText(name), args: toText(args) });
    call.index = place;
    return place !== undefined;
  }

  function fixChoice(choice: unknown): boolean {
    if (!isRecord(choice)) return false;
    if (typeof choice.index !== "number") choice.index = 0;
    if (typeof choice.finish_reason !== "string" || choice.finish_reason === "") choice.finish_reason = null;
    if (isRecord(choice.delta)) hasDeltas = true;
    // Behind deltas a message says all of it once more.
    const delta = choice.delta ?? (hasDeltas ? undefined : choice.message) ?? {};
    if (!isRecord(delta)) return false;
    choice.delta = delta;
    if (typeof delta.content !== "string" && !fixContent(delta)) return false;
    const calls = delta.tool_calls;
    if (calls === undefined) return true;
    if (calls === null) return delete delta.tool_calls;
    return Array.isArray(calls) && calls.every(fixCall);
  }

  return (value) => {
    if (!isRecord(value)) return undefined;
    if (!Array.isArray(value.choices)) value.choices = [];
    // One answer is asked for; the text of a second one would run into it.
    if ((value.choices as unknown[]).length > 1) value.choices = (value.choices as unknown[]).filter(isFirst);
    if (!(value.choices as unknown[]).every(fixChoice)) return undefined;
    if (value.usage !== undefined) value.usage = readUsage(value.usage) ?? null;
    return value as unknown as ChatCompletionChunk;
  };
}

function isFirst(choice: unknown): boolean {
  return !isRecord(choice) || typeof choice.index !== "number" || choice.index === 0;
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/**
 * Makes the content of a message, whole or a fragment, a text where it is none: a list of parts becomes the text in
 * it, and a refusal stands where nothing else is said. False when it is something else.
 */
export function fixContent(message: Record<string, unknown>): boolean {
  const { content, refusal } = message;
  if (Array.isArray(content)) {
    // Parts of other types are the model thinking, or nothing that can be shown as text.
    message.content = content.map((part) => (isTextPart(part) ? toText(part.text) : "")).join("");
    message.reasoning ??= content.filter((part) => !isTextPart(part));
    return true;
  }
  if (content !== undefined && content !== null && typeof content !== "string") return false;
  if (!content && typeof refusal === "string" && refusal !== "") message.content = refusal;
  return true;
}

function isTextPart(part: unknown): part is Record<string, unknown> {
  return isRecord(part) && part.type === "text";
}

/** The interface has no reasoning; these are the names under which servers stream it all the same. */
const REASONING_FIELDS = [
  "reasoning_content",
  "reasoning",
  "reasoning_details",
  "thinking",
  "thinking_blocks",
] as const;

/** The delta carries some of what the model thinks before it answers. */
export function hasReasoning(delta: Delta): boolean {
  const fields = delta as Record<string, unknown>;
  return REASONING_FIELDS.some((name) => {
    const value = fields[name];
    return Array.isArray(value) ? value.length > 0 : isRecord(value) || toText(value) !== "";
  });
}

/** Token counts; undefined unless both parts are there. A missing total is their sum. */
export function readUsage(value: unknown): Usage | undefined {
  if (!isRecord(value)) return undefined;
  const { prompt_tokens, completion_tokens, total_tokens } = value;
  if (typeof prompt_tokens !== "number" || typeof completion_tokens !== "number") return undefined;
  const total = typeof total_tokens === "number" ? total_tokens : prompt_tokens + completion_tokens;
  return { prompt_tokens, completion_tokens, total_tokens: total };
}

/** Makes the function of a call, whole or a fragment, what the wire types say; false when it cannot. */
export function fixFunction(call: Record<string, unknown>): boolean {
  const fn = call.function;
  if (fn === undefined || fn === null) return delete call.function;
  if (!isRecord(fn)) return false;
  if (typeof fn.name !== "string" || fn.name === "") delete fn.name;
  if (isRecord(fn.arguments)) fn.arguments = JSON.stringify(fn.arguments);
  if (fn.arguments === null) delete fn.arguments;
  return fn.arguments === undefined || typeof fn.arguments === "string";
}
