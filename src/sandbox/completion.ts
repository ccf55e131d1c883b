import { randomUUID } from "node:crypto";
import type { AssistantMessage, TokenUsage, ToolCall } from "../gateway/chunks.ts";
import type { SandboxChatRequest } from "./chat-request.ts";
import { toInvalidRequest } from "./errors.ts";
import { countPromptTokens, countTokens, truncateToTokens } from "./tokens.ts";

/** The model's answer before `stop` and the token limit shorten it. */
export interface Answer {
  content: string;
  toolCalls: ToolCall[];
}

interface ChatCompletion {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: Array<{ index: number; message: AssistantMessage; finish_reason: string }>;
  usage: TokenUsage;
}

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

export interface Completion {
  id: string;
  /** Unix seconds. */
  created: number;
  model: string;
  content: string;
  toolCalls: ToolCall[];
  finishReason: FinishReason;
  usage: TokenUsage;
}

/** A prompt and its answer together can have at most this many tokens. */
const CONTEXT_TOKENS = 128_000;

/** Returns the most tokens that the answer can have. Throws a 400 if the prompt and `max_tokens` exceed the context. */
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

/** Shortens an answer to `stop` and the token limit, and counts its tokens. */
export function toCompletion(model: string, request: SandboxChatRequest, answer: Answer): Completion {
  const promptTokens = countPromptTokens(request);
  const maxTokens = readMaxTokens(request, promptTokens);
  const said = truncateAtStop(answer.content, request.stop ?? []);
  const content = truncateToTokens(said, maxTokens);
  const toolCalls = cutCalls(answer.toolCalls, maxTokens - countTokens(content));
  const isTruncated = content.length < said.length || countCalls(toolCalls) < countCalls(answer.toolCalls);
  return {
    id: `chatcmpl-${randomUUID().replaceAll("-", "")}`,
    created: Math.floor(Date.now() / 1000),
    model,
    content,
    toolCalls,
    finishReason: isTruncated ? "length" : toolCalls.length > 0 ? "tool_calls" : "stop",
    usage: toUsage(promptTokens, countAnswer(content, toolCalls)),
  };
}

/** Shortens a completion, for faults that stop in the middle of an answer. */
export function shorten(completion: Completion, content: string, finishReason: FinishReason): Completion {
  const usage = toUsage(completion.usage.prompt_tokens, countTokens(content));
  return { ...completion, content, toolCalls: [], finishReason, usage };
}

/** Builds the response body for a request without `stream`. OpenAI's schema requires the fields that are null. */
export function toWholeBody(completion: Completion): ChatCompletion {
  const { id, created, model, content, toolCalls, finishReason, usage } = completion;
  const calls = toolCalls.length > 0 ? { tool_calls: toolCalls } : {};
  const message = { role: "assistant" as const, content, refusal: null, ...calls };
  const choice = { index: 0, message, logprobs: null, finish_reason: finishReason };
  return { id, object: "chat.completion", created, model, choices: [choice], usage };
}

function truncateAtStop(content: string, stop: string | string[]): string {
  const ends = (typeof stop === "string" ? [stop] : stop)
    .map((word) => content.indexOf(word))
    .filter((at) => at !== -1);
  return content.slice(0, Math.min(content.length, ...ends));
}

/** Truncates the arguments of calls, as real models do if they run out of tokens within a call. */
function cutCalls(calls: ToolCall[], maxTokens: number): ToolCall[] {
  let left = maxTokens;
  return calls.flatMap((call) => {
    if (left <= 0) return [];
    const text = truncateToTokens(call.function.arguments, left);
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
