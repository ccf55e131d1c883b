/** The messages on the wire to and from the gateway, in the wire's own names, and the fold from deltas to a message. */

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
}

export interface Delta {
  role?: string;
  content?: string | null;
  /** The model's thoughts before its answer; "" when its server withholds them. */
  reasoning?: string;
  tool_calls?: ToolCallDelta[];
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

export interface ChatCompletion {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: Array<{ index: number; message: AssistantMessage & Pick<Delta, "reasoning">; finish_reason: string }>;
  usage: TokenUsage;
}

/** The text of a message, one line for each of its texts; pictures have none. Pure. */
export function textOf({ content }: Pick<ChatMessage, "content">): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? part.text : [])).join("\n");
}

const NO_CALL: ToolCall = { id: "", type: "function", function: { name: "", arguments: "" } };

/**
 * Folds one delta into the message it belongs to. Pure: returns a new message. Calls are assembled by index; some
 * gateways begin at 1, or with a later one: what has not come has no name.
 */
export function applyDelta(message: AssistantMessage, delta: Delta): AssistantMessage {
  const content = message.content + (delta.content ?? "");
  if (delta.tool_calls === undefined) return { ...message, content };

  const calls = [...(message.tool_calls ?? [])];
  for (const { index, id, function: fn } of delta.tool_calls) {
    const call = calls[index] ?? NO_CALL;
    calls[index] = {
      ...call,
      id: id ?? call.id,
      function: {
        name: fn?.name ?? call.function.name,
        arguments: call.function.arguments + (fn?.arguments ?? ""),
      },
    };
  }
  return { ...message, content, tool_calls: Array.from(calls, (call) => call ?? NO_CALL) };
}

/** Completes a message after its last delta: calls that have a name, an own id for each, no empty `tool_calls`. Pure. */
export function settleCalls(message: AssistantMessage): AssistantMessage {
  const { tool_calls: calls = [], ...rest } = message;
  const ids = new Set<string>();
  const settled = calls
    .filter((call) => call.function.name !== "")
    .map((call, index) => {
      let { id } = call;
      for (let number = index; id === "" || ids.has(id); number++) id = `call_${number}`;
      ids.add(id);
      return { ...call, id };
    });
  return settled.length === 0 ? rest : { ...rest, tool_calls: settled };
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
  try {
    JSON.parse(call.function.arguments);
    return true;
  } catch {
    return false;
  }
}
