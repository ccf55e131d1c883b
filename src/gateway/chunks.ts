/** The messages on the wire to and from the gateway, in the wire's own names, and the fold from deltas to a message. */

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
  /** `arguments` is JSON as the model wrote it: unchecked. */
  function: { name: string; arguments: string };
  /** Goes back to the gateway within the turn, and is not kept. */
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
  /** Goes back to the gateway within the turn, and is not kept. */
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
  /** The part of the prompt that the gateway had read before, where it says so. */
  cached_tokens?: number;
  /** The gateway's own figure for the cost of the request, in its own currency. */
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
  /** The model's thoughts before its answer; "" when its server withholds them. */
  reasoning?: string;
  tool_calls?: ToolCallDelta[];
  /** Pictures of the answer, as data URLs. */
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
  object: string;
  created: number;
  model: string;
  /** Empty on the closing chunk that some gateways add to carry only `usage`. */
  choices: ChunkChoice[];
  usage?: TokenUsage | null;
}

/** The text of a message, one line for each of its texts; pictures have none. Pure. */
export function textOf({ content }: Pick<ChatMessage, "content">): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? part.text : [])).join("\n");
}

const NO_CALL: ToolCall = { id: "", type: "function", function: { name: "", arguments: "" } };

/**
 * Folds one delta into the message it belongs to. Pure: returns a new message. Calls are assembled by index; some
 * gateways begin at 1, or with a later one: a call that has not come has no name.
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
 * Completes a message after its last delta: calls that have a name, a different id for each, arguments that are JSON if
 * they can only mean one thing, no empty `tool_calls`. An answer without calls keeps nothing attached, and neither does
 * one with too much of it. Pure.
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
      // A server of gpt-oss may leave marks of the model's own format at the end of the name.
      return { ...call, id, function: { name: name.replace(/<\|.*$/s, ""), arguments: repairArguments(args) } };
    });
  if (settled.length === 0) return rest;
  const whole = { ...rest, tool_calls: settled, ...(attached !== undefined && { attached }) };
  return isKeepable([attached, ...settled.map((call) => call.attached)]) ? whole : withoutFields(whole);
}

/** The message without what the gateway attached, as the history keeps it. Pure. */
export function withoutAttached(message: ChatMessage): ChatMessage {
  return message.role === "assistant" ? withoutFields(message) : message;
}

function withoutFields({ attached: _fields, tool_calls: calls, ...rest }: AssistantMessage): AssistantMessage {
  if (calls === undefined) return rest;
  return { ...rest, tool_calls: calls.map(({ attached: _own, ...call }) => call) };
}

/** The message as a strict gateway takes it back: arguments that are no JSON, which it would refuse, become `{}`. Pure. */
export function toSendable(message: AssistantMessage): AssistantMessage {
  if (message.tool_calls === undefined) return message;
  const calls = message.tool_calls.map((call) =>
    isWholeCall(call) ? call : { ...call, function: { ...call.function, arguments: "{}" } },
  );
  return { ...message, tool_calls: calls };
}

/** The call's arguments are JSON: those of an answer that was cut off are not. Pure. */
export function isWholeCall(call: ToolCall): boolean {
  return isJson(call.function.arguments);
}
