/** The messages to and from the gateway, with the interface's field names. Also joins deltas to a message. */

import type { Source } from "../text/sources.ts";
import { type Attached, isKeepable, joinAttached } from "./attached.ts";
import { isJson } from "./json.ts";
import { repairArguments } from "./repair-arguments.ts";

export interface TextPart {
  type: "text";
  text: string;
}

export interface ImagePart {
  type: "image_url";
  image_url: { url: string; detail?: "auto" | "low" | "high" };
}

export type ContentPart = TextPart | ImagePart;

export interface ToolCall {
  id: string;
  type: "function";
  /** `arguments` is JSON as the model wrote it, so it can be invalid. */
  function: { name: string; arguments: string };
  /** Palaver sends these fields back within the turn, but does not store them. */
  attached?: Attached;
}

export interface SystemMessage {
  role: "system";
  content: string | ContentPart[];
  name?: string;
}

export interface UserMessage {
  role: "user";
  content: string | ContentPart[];
  name?: string;
}

export interface AssistantMessage {
  role: "assistant";
  content: string;
  name?: string;
  tool_calls?: ToolCall[];
  attached?: Attached;
}

export interface ToolMessage {
  role: "tool";
  content: string;
  tool_call_id: string;
}

export type ChatMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

export interface ToolDefinition {
  type: "function";
  function: { name: string; description: string; parameters: Record<string, unknown> };
}

export interface TokenUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /** Prompt tokens that the gateway took from its cache, if it reports them. */
  cached_tokens?: number;
  /** The cost of the request in the gateway's currency, if the gateway reports it. */
  cost?: number;
}

export interface ToolCallDelta {
  index: number;
  id?: string;
  type?: "function";
  function?: { name?: string; arguments?: string };
  attached?: Attached;
}

export interface Delta {
  role?: string;
  content?: string | null;
  /** The model's thoughts before its answer; "" if the server withholds them. */
  reasoning?: string;
  tool_calls?: ToolCallDelta[];
  /** The images, as data URLs. */
  pictures?: string[];
  attached?: Attached;
}

export interface ChunkChoice {
  index: number;
  delta: Delta;
  finish_reason?: string | null;
}

export interface ChatCompletionChunk {
  id: string;
  model: string;
  /** Empty in a last chunk that contains only `usage`. */
  choices: ChunkChoice[];
  /** The pages that the answer cites. A later chunk can repeat them. */
  sources?: Source[];
  usage?: TokenUsage | null;
}

/** Returns the text of a message, one line per text part, without images. Pure. */
export function textOf({ content }: Pick<ChatMessage, "content">): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? part.text : [])).join("\n");
}

const NO_CALL: ToolCall = { id: "", type: "function", function: { name: "", arguments: "" } };

/**
 * Adds a delta to its message and returns a new message. Pure. Joins calls by index. Some gateways start the index at 1
 * or higher, which leaves calls without a name at the beginning.
 */
export function applyDelta(message: AssistantMessage, delta: Delta): AssistantMessage {
  const content = message.content + (delta.content ?? "");
  const attached = joinAttached(message.attached, delta.attached);
  const folded = { ...message, content, ...(attached !== undefined && { attached }) };
  if (delta.tool_calls === undefined) return folded;

  const calls = [...(message.tool_calls ?? [])];
  for (const { index, id, function: fn, ...more } of delta.tool_calls) {
    const call = calls[index] ?? NO_CALL;
    const own = joinAttached(call.attached, more.attached);
    calls[index] = {
      ...call,
      id: id ?? call.id,
      function: {
        name: fn?.name ?? call.function.name,
        arguments: call.function.arguments + (fn?.arguments ?? ""),
      },
      ...(own !== undefined && { attached: own }),
    };
  }
  return { ...folded, tool_calls: Array.from(calls, (call) => call ?? NO_CALL) };
}

/**
 * Completes a message after its last delta. Keeps only calls with a name, gives each a different id, repairs arguments
 * that can mean only one thing, and removes an empty `tool_calls`. Drops attached fields if there are no calls or too
 * many fields. Pure.
 */
export function settleCalls({ tool_calls: calls = [], attached, ...rest }: AssistantMessage): AssistantMessage {
  const ids = new Set<string>();
  const settled = calls
    .filter((call) => call.function.name !== "")
    .map((call, index) => {
      let { id } = call;
      for (let number = index; id === "" || ids.has(id); number++) id = `call_${number}`;
      ids.add(id);
      const { name, arguments: args } = call.function;
      // A server for gpt-oss can leave markers of the model's format at the end of the name.
      return { ...call, id, function: { name: name.replace(/<\|.*$/s, ""), arguments: repairArguments(args) } };
    });
  if (settled.length === 0) return rest;
  const whole = { ...rest, tool_calls: settled, ...(attached !== undefined && { attached }) };
  return isKeepable([attached, ...settled.map((call) => call.attached)]) ? whole : withoutFields(whole);
}

/** Returns the message as the history stores it, without attached fields. Pure. */
export function withoutAttached(message: ChatMessage): ChatMessage {
  return message.role === "assistant" ? withoutFields(message) : message;
}

function withoutFields({ attached: _fields, tool_calls: calls, ...rest }: AssistantMessage): AssistantMessage {
  if (calls === undefined) return rest;
  return { ...rest, tool_calls: calls.map(({ attached: _own, ...call }) => call) };
}

/** Returns the message as a strict gateway accepts it: arguments that are not JSON become `{}`. Pure. */
export function toSendable(message: AssistantMessage): AssistantMessage {
  if (message.tool_calls === undefined) return message;
  const calls = message.tool_calls.map((call) =>
    isWholeCall(call) ? call : { ...call, function: { ...call.function, arguments: "{}" } },
  );
  return { ...message, tool_calls: calls };
}

/** True if the call's arguments are valid JSON, which they need not be in a truncated answer. Pure. */
export function isWholeCall(call: ToolCall): boolean {
  return isJson(call.function.arguments);
}
