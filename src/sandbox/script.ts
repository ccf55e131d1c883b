import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type Completion, toWholeBody } from "./completion.ts";
import { splitPieces } from "./tokens.ts";

/** One step of a response. The time that a send takes depends on its `tokens` and the model's speed. */
export type ScriptStep =
  | { type: "head" }
  | { type: "send"; bytes: string | Uint8Array; tokens: number }
  | { type: "wait"; forMs: number }
  | { type: "cut" };

/** The plan of a response. Faults change the plan before the first byte is sent. */
export interface Script {
  contentType: string;
  steps: ScriptStep[];
}

/** Plans the stream in the interface's order: role with empty content, increments, finish reason, [DONE]. */
export function toStreamScript(completion: Completion, hasUsage: boolean): Script {
  const { id, created, model, content, toolCalls, finishReason, usage } = completion;
  const envelope = { id, object: "chat.completion.chunk", created, model };
  const noUsage = hasUsage ? { usage: null } : {};
  const chunk = (delta: object, tokens: number, finish: string | null = null) =>
    event({ ...envelope, choices: [{ index: 0, delta, finish_reason: finish }], ...noUsage }, tokens);

  const calls = toolCalls.flatMap(({ id, function: { name, arguments: json } }, index) => [
    chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }, 1),
    ...splitPieces(json).map(({ text, tokens }) =>
      chunk({ tool_calls: [{ index, function: { arguments: text } }] }, tokens),
    ),
  ]);
  return {
    contentType: "text/event-stream; charset=utf-8",
    steps: [
      { type: "head" },
      chunk({ role: "assistant", content: "" }, 0),
      ...splitPieces(content).map(({ text, tokens }) => chunk({ content: text }, tokens)),
      ...calls,
      chunk({}, 0, finishReason),
      ...(hasUsage ? [event({ ...envelope, choices: [], usage }, 0)] : []),
      { type: "send", bytes: "data: [DONE]\n\n", tokens: 0 },
    ],
  };
}

/** Plans one JSON body that takes as long as the stream would. */
export function toWholeScript(completion: Completion, tokensPerSecond: number): Script {
  const forMs = (completion.usage.completion_tokens / tokensPerSecond) * 1000;
  return toJsonScript(toWholeBody(completion), forMs);
}

export function toJsonScript(body: unknown, afterMs = 0): Script {
  const send: ScriptStep = { type: "send", bytes: JSON.stringify(body), tokens: 0 };
  const steps: ScriptStep[] = afterMs > 0 ? [{ type: "wait", forMs: afterMs }, send] : [send];
  return { contentType: "application/json; charset=utf-8", steps };
}

function event(chunk: object, tokens: number): ScriptStep {
  return { type: "send", bytes: `data: ${JSON.stringify(chunk)}\n\n`, tokens };
}

/** Sends a response. Resolves when the response ends or a fault closes the connection. Rejects if `signal` aborts. */
export async function playScript(
  { contentType, steps }: Script,
  response: ServerResponse,
  tokensPerSecond: number,
  signal: AbortSignal,
  onSent: (tokens: number) => void = () => {},
): Promise<void> {
  response.setHeader("content-type", contentType);
  if (contentType.startsWith("text/event-stream")) response.setHeader("cache-control", "no-cache");
  let dueAt = performance.now();
  for (const [index, step] of steps.entries()) {
    signal.throwIfAborted();
    if (step.type === "send") {
      dueAt += (step.tokens / tokensPerSecond) * 1000;
      const waitMs = dueAt - performance.now();
      if (waitMs > 1) await sleep(waitMs, undefined, { signal });
      onSent(step.tokens);
      // Passing the whole body to `end` sets Content-Length, as in plain JSON responses.
      if (index === steps.length - 1) response.end(step.bytes);
      else if (!response.write(step.bytes)) await once(response, "drain", { signal });
      continue;
    }
    await perform(step, response, signal);
    if (step.type === "cut") return;
    dueAt = performance.now();
  }
  if (!response.writableEnded) response.end();
}

async function perform(
  step: Exclude<ScriptStep, { type: "send" }>,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  switch (step.type) {
    case "head":
      response.flushHeaders();
      return;
    case "wait":
      await sleep(step.forMs, undefined, { signal });
      return;
    case "cut":
      // The caller must receive everything before the connection closes.
      if (response.headersSent) await new Promise<void>((resolve) => response.write("", () => resolve()));
      response.destroy();
  }
}
