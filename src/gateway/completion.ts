import { fixContent, fixFunction, fixReasoning, MAX_TOOL_CALLS, readUsage } from "./chunk-reader.ts";
import type { ChatCompletion, ChatCompletionChunk, ToolCall } from "./chunks.ts";
import { GatewayError } from "./errors.ts";
import { hasError, isRecord, parseJson, toStreamError } from "./failures.ts";
import type { SafeText } from "./safe-text.ts";

/** A whole answer from its JSON. Throws a GatewayError when it is an error object or no answer. */
export function parseCompletion(json: string, safe: SafeText): ChatCompletion {
  const text = json.trim();
  if (text === "") throw new GatewayError("malformed", "The gateway's answer is empty.");
  if (text.startsWith("<")) throw toPageError();
  const parsed = parseJson(text);
  const value: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  if (hasError(value)) throw toStreamError(value, safe);
  const completion = readCompletion(value);
  if (completion === undefined) {
    throw new GatewayError("malformed", "The gateway's answer is not a chat completion: it has no readable choices.");
  }
  return completion;
}

/** A page where an answer should be comes from something else than a gateway. */
function toPageError(): GatewayError {
  return new GatewayError(
    "malformed",
    "The gateway answered with a web page instead of an answer: check that its base address is right.",
  );
}

/** Reads a whole answer; undefined when it is none. */
function readCompletion(value: unknown): ChatCompletion | undefined {
  if (!isRecord(value) || !Array.isArray(value.choices) || value.choices.length === 0) return undefined;
  const choices = value.choices.map(readChoice);
  if (choices.some((choice) => choice === undefined)) return undefined;
  return {
    id: typeof value.id === "string" ? value.id : "",
    object: "chat.completion",
    created: typeof value.created === "number" ? value.created : 0,
    model: typeof value.model === "string" ? value.model : "",
    choices: choices.filter((choice) => choice !== undefined),
    usage: readUsage(value.usage) ?? { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
  };
}

/** A whole answer as the chunks a stream would have brought: text and what was thought, calls, finish and usage. */
export function toChunks(completion: ChatCompletion): ChatCompletionChunk[] {
  const { id, created, model, choices, usage } = completion;
  const base = { id, object: "chat.completion.chunk", created, model };
  const chunks: ChatCompletionChunk[] = [];
  // One answer is asked for; the text of a second one would run into it.
  for (const { index, message, finish_reason } of choices.slice(0, 1)) {
    const { role, content, reasoning } = message;
    const text = { role, content, ...(reasoning !== undefined && { reasoning }) };
    chunks.push({ ...base, choices: [{ index, delta: text, finish_reason: null }] });
    const calls = message.tool_calls?.map((call, position) => ({ index: position, ...call }));
    if (calls !== undefined && calls.length > 0) {
      chunks.push({ ...base, choices: [{ index, delta: { tool_calls: calls }, finish_reason: null }] });
    }
    chunks.push({ ...base, choices: [{ index, delta: {}, finish_reason }] });
  }
  if (usage.total_tokens > 0) chunks.push({ ...base, choices: [], usage });
  return chunks;
}

function readChoice(choice: unknown, position: number): ChatCompletion["choices"][number] | undefined {
  if (!isRecord(choice) || !isRecord(choice.message)) return undefined;
  if (!fixContent(choice.message)) return undefined;
  fixReasoning(choice.message);
  const { content, reasoning, tool_calls } = choice.message;
  if (tool_calls !== undefined && tool_calls !== null && !Array.isArray(tool_calls)) return undefined;
  const calls = (tool_calls ?? []).map(readCall);
  if (calls.some((call) => call === undefined) || calls.length > MAX_TOOL_CALLS) return undefined;
  return {
    index: typeof choice.index === "number" ? choice.index : position,
    message: {
      role: "assistant",
      content: typeof content === "string" ? content : "",
      ...(typeof reasoning === "string" && { reasoning }),
      ...(calls.length > 0 ? { tool_calls: calls.filter((call) => call !== undefined) } : {}),
    },
    finish_reason: typeof choice.finish_reason === "string" ? choice.finish_reason : "stop",
  };
}

function readCall(call: unknown): ToolCall | undefined {
  if (!isRecord(call) || !fixFunction(call) || !isRecord(call.function)) return undefined;
  const { name, arguments: args } = call.function;
  if (typeof name !== "string") return undefined;
  const id = typeof call.id === "string" ? call.id : "";
  return { id, type: "function", function: { name, arguments: typeof args === "string" ? args : "" } };
}
