import { randomUUID } from "node:crypto";
import type { AssistantMessage, TokenUsage, ToolCall } from "../gateway/chunks.ts";
import type { SandboxChatRequest } from "./chat-request.ts";
import { toInvalidRequest } from "./errors.ts";
import { type Thought, toFields, toWholeFields, withTags } from "./thinking.ts";
import { countPromptTokens, countTokens, cutToTokens } from "./tokens.ts";

/** The answer of a model, before the request's limits are applied. */
export interface Answer {
  content: string;
  toolCalls: ToolCall[];
  /** Thought before it. */
  thinking?: Thought | undefined;
}

/** The whole answer to a request that asks for no stream. */
interface ChatCompletion {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: Array<{ index: number; message: AssistantMessage & { reasoning?: string }; finish_reason: string }>;
  usage: TokenUsage;
}

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

export interface Completion {
  id: string;
  /** Unix seconds. */
  created: number;
  model: string;
  /** Thought before the answer, where that does not stand in its text. */
  thinking: Thought | undefined;
  content: string;
  toolCalls: ToolCall[];
  finishReason: FinishReason;
  usage: TokenUsage;
}

/** Prompt and answer together. */
const CONTEXT_TOKENS = 128_000;

/** Most tokens the answer may have. Throws a 400 when prompt and `max_tokens` do not fit into the context. */
function readMaxTokens(request: SandboxChatRequest, promptTokens: number): number {
  const { max_tokens: maxTokens, max_completion_tokens: maxCompletionTokens } = request;
  if (promptTokens >= CONTEXT_TOKENS) {
    throw toInvalidRequest(
      `The messages have about ${promptTokens} tokens, more than the model's context of ${CONTEXT_TOKENS}.`,
      "context_length_exceeded",
      "messages",
    );
  }
  const asked = Math.min(maxTokens ?? Number.POSITIVE_INFINITY, maxCompletionTokens ?? Number.POSITIVE_INFINITY);
  const room = CONTEXT_TOKENS - promptTokens;
  if (asked === Number.POSITIVE_INFINITY) return room;
  if (asked <= room) return asked;
  throw toInvalidRequest(
    `max_tokens is ${asked}, but the model's context of ${CONTEXT_TOKENS} tokens leaves ${room} after the messages.`,
    "context_length_exceeded",
    typeof maxTokens === "number" ? "max_tokens" : "max_completion_tokens",
  );
}

/** Applies `stop` and the token limit to an answer and counts what is left. */
export function toCompletion(model: string, request: SandboxChatRequest, answer: Answer): Completion {
  const promptTokens = countPromptTokens(request);
  const maxTokens = readMaxTokens(request, promptTokens);
  const thinking = cutThinking(answer.thinking, maxTokens);
  const limit = maxTokens - countTokens(thinking?.text ?? "");
  const said = cutAtStop(withTags(answer.content, answer.thinking), request.stop ?? []);
  const content = cutToTokens(said, limit);
  const toolCalls = cutCalls(answer.toolCalls, limit - countTokens(content));
  const completionTokens = countTokens(thinking?.text ?? "") + countAnswer(content, toolCalls);
  const isCut = content.length < said.length || countCalls(toolCalls) < countCalls(answer.toolCalls);
  return {
    id: `chatcmpl-${randomUUID().replaceAll("-", "")}`,
    created: Math.floor(Date.now() / 1000),
    model,
    thinking,
    content,
    toolCalls,
    finishReason: isCut ? "length" : toolCalls.length > 0 ? "tool_calls" : "stop",
    usage: toUsage(promptTokens, completionTokens),
  };
}

/** Undefined where it stands in the text, which is cut as a whole. */
function cutThinking(thinking: Thought | undefined, limit: number): Thought | undefined {
  if (thinking === undefined || toFields(thinking) === undefined) return undefined;
  return { ...thinking, text: cutToTokens(thinking.text, limit) };
}

/** The same completion ended early: used by faults that stop in the middle. */
export function shorten(completion: Completion, content: string, finishReason: FinishReason): Completion {
  const completionTokens = countTokens(completion.thinking?.text ?? "") + countTokens(content);
  const usage = toUsage(completion.usage.prompt_tokens, completionTokens);
  return { ...completion, content, toolCalls: [], finishReason, usage };
}

/** The response body of a request that does not stream, with the fields that OpenAI's schema requires to be null. */
export function toWholeBody(completion: Completion): ChatCompletion {
  const { id, created, model, thinking, content, toolCalls, finishReason, usage } = completion;
  const calls = toolCalls.length > 0 ? { tool_calls: toolCalls } : {};
  const thought = thinking && toWholeFields(thinking, content);
  const message = { role: "assistant" as const, content, refusal: null, ...calls, ...thought };
  const choice = { index: 0, message, logprobs: null, finish_reason: finishReason };
  return { id, object: "chat.completion", created, model, choices: [choice], usage };
}

function cutAtStop(content: string, stop: string | string[]): string {
  const ends = (typeof stop === "string" ? [stop] : stop)
    .map((word) => content.indexOf(word))
    .filter((at) => at !== -1);
  return content.slice(0, Math.min(content.length, ...ends));
}

/** A model that runs out of tokens inside a call leaves its arguments broken off: so does this one. */
function cutCalls(calls: ToolCall[], maxTokens: number): ToolCall[] {
  let left = maxTokens;
  return calls.flatMap((call) => {
    if (left <= 0) return [];
    const text = cutToTokens(call.function.arguments, left);
    left -= countTokens(text);
    return [{ ...call, function: { name: call.function.name, arguments: text } }];
  });
}

function countAnswer(content: string, calls: ToolCall[]): number {
  return countTokens(content) + calls.reduce((sum, call) => sum + countTokens(call.function.arguments), 0);
}

function countCalls(calls: ToolCall[]): number {
  return calls.reduce((sum, call) => sum + 1 + call.function.arguments.length, 0);
}

function toUsage(promptTokens: number, completionTokens: number): TokenUsage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}
