import type { ChatCompletionChunk, Usage } from "./chunks.ts";
import { isRecord } from "./failures.ts";

/** Above this an index is a mistake or an attack, and would make a list of that length. */
export const MAX_TOOL_CALLS = 128;

/** Reads one event's JSON as a chunk; undefined when it is none. */
export type ReadChunk = (value: unknown) => ChatCompletionChunk | undefined;

/**
 * Reads the chunks of one answer. What servers do differently is made the same: missing `choices`, empty ids
 * and names in later fragments, calls without an index, arguments as an object. Chunks are changed in place,
 * because there are thousands of them.
 */
export function createReadChunk(): ReadChunk {
  let callsWithoutIndex = 0;

  function readIndex(call: Record<string, unknown>): number {
    if (Number.isSafeInteger(call.index)) return call.index as number;
    // Without an index, an id begins a call and everything else goes on with it.
    if (typeof call.id === "string" && call.id !== "") callsWithoutIndex += 1;
    return Math.max(0, callsWithoutIndex - 1);
  }

  function fixCall(call: unknown): boolean {
    if (!isRecord(call)) return false;
    call.index = readIndex(call);
    if ((call.index as number) < 0 || (call.index as number) >= MAX_TOOL_CALLS) return false;
    if (typeof call.id !== "string" || call.id === "") delete call.id;
    return fixFunction(call);
  }

  function fixChoice(choice: unknown): boolean {
    if (!isRecord(choice)) return false;
    if (typeof choice.index !== "number") choice.index = 0;
    if (typeof choice.finish_reason !== "string" || choice.finish_reason === "") choice.finish_reason = null;
    const delta = choice.delta ?? choice.message ?? {};
    if (!isRecord(delta)) return false;
    choice.delta = delta;
    if (delta.content !== undefined && delta.content !== null && typeof delta.content !== "string") return false;
    const calls = delta.tool_calls;
    if (calls === undefined) return true;
    if (calls === null) return delete delta.tool_calls;
    return Array.isArray(calls) && calls.every(fixCall);
  }

  return (value) => {
    if (!isRecord(value)) return undefined;
    if (!Array.isArray(value.choices)) value.choices = [];
    if (!(value.choices as unknown[]).every(fixChoice)) return undefined;
    if (value.usage !== undefined) value.usage = readUsage(value.usage) ?? null;
    return value as unknown as ChatCompletionChunk;
  };
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
