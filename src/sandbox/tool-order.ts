import type { SandboxMessage } from "./chat-request.ts";
import { toInvalidRequest } from "./errors.ts";

/**
 * Holds the order that tool conversations must keep: a `tool` message answers a call of the assistant message
 * before it, once, and every call is answered before anybody else speaks. Throws a 400 that names the message.
 */
export function requireAnswered(messages: readonly SandboxMessage[]): void {
  let open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") {
      requireOpen(open, message.tool_call_id, index);
      open.delete(message.tool_call_id);
      continue;
    }
    requireNothingOpen(open, `messages[${index}]`);
    if (message.role === "assistant") open = readCalls(message, index);
  }
  requireNothingOpen(open, "messages");
}

function readCalls(message: Extract<SandboxMessage, { role: "assistant" }>, index: number): Set<string> {
  const calls = message.tool_calls ?? [];
  if (calls.length === 0 && (message.content === undefined || message.content === null)) {
    const param = `messages[${index}].content`;
    throw toInvalidRequest(`${param} is required where there are no tool_calls.`, "missing_required_parameter", param);
  }
  const ids = new Set(calls.map((call) => call.id));
  if (ids.size < calls.length) {
    const param = `messages[${index}].tool_calls`;
    throw toInvalidRequest(`${param} uses one id for two calls.`, "invalid_value", param);
  }
  return ids;
}

function requireOpen(open: ReadonlySet<string>, id: string, index: number): void {
  if (open.has(id)) return;
  const param = `messages[${index}].tool_call_id`;
  throw toInvalidRequest(
    `${param} must name an unanswered tool call of the assistant message before it; ${JSON.stringify(id)} is none.`,
    "invalid_value",
    param,
  );
}

function requireNothingOpen(open: ReadonlySet<string>, param: string): void {
  if (open.size === 0) return;
  throw toInvalidRequest(
    `Every tool call must be answered by a tool message before the conversation goes on. Unanswered: ${[...open].join(", ")}.`,
    "invalid_value",
    param,
  );
}
