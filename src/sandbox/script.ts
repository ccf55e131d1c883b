import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type Completion, toWholeBody } from "./completion.ts";
import { toFields } from "./thinking.ts";
import { splitPieces } from "./tokens.ts";

/** One thing a response does. `tokens` is what a send costs at the model's speed; only text has a cost. */
export type ScriptStep =
  | { type: "head" }
  | { type: "send"; bytes: string | Uint8Array; tokens: number }
  | { type: "wait"; forMs: number }
  | { type: "hold"; hasKeepAlive: boolean }
  | { type: "cut" };

/** A response, planned before its first byte, so that a fault is a change of the plan. */
export interface Script {
  contentType: string;
  steps: ScriptStep[];
}

/** Nothing is held open longer for callers who forget to leave. */
const HOLD_LIMIT_MS = 600_000;
const KEEP_ALIVE_MS = 1000;

/** The stream of the interface to the letter: role with empty content, increments, finish with an empty delta, [DONE]. */
export function toStreamScript(completion: Completion, hasUsage: boolean): Script {
  const { id, created, model, thinking, content, toolCalls, finishReason, usage } = completion;
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
  const thoughts = thinking
    ? splitPieces(thinking.text).map(({ text, tokens }) => chunk(toFields({ ...thinking, text }) ?? {}, tokens))
    : [];
  return {
    contentType: "text/event-stream; charset=utf-8",
    steps: [
      { type: "head" },
      chunk({ role: "assistant", content: "" }, 0),
      ...thoughts,
      ...splitPieces(content).map(({ text, tokens }) => chunk({ content: text }, tokens)),
      ...calls,
      chunk({}, 0, finishReason),
      ...(hasUsage ? [event({ ...envelope, choices: [], usage }, 0)] : []),
      { type: "send", bytes: "data: [DONE]\n\n", tokens: 0 },
    ],
  };
}

/** The whole completion as one JSON body. Like a stream it takes its time, when a speed was asked for. */
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

/** Performs a script. Resolves when the response ended or was cut; rejects when `signal` aborts. */
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
      // A body sent at once carries its length, as plain JSON answers do.
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
    case "hold":
      await hold(response, step.hasKeepAlive, signal);
      return;
    case "cut":
      // The caller gets everything written before the cut, which loses the rest and not the beginning.
      if (response.headersSent) await new Promise<void>((resolve) => response.write("", () => resolve()));
      response.destroy();
  }
}

async function hold(response: ServerResponse, hasKeepAlive: boolean, signal: AbortSignal): Promise<void> {
  for (let heldMs = 0; heldMs < HOLD_LIMIT_MS; heldMs += KEEP_ALIVE_MS) {
    await sleep(KEEP_ALIVE_MS, undefined, { signal });
    if (hasKeepAlive) response.write(": keepalive\n\n");
  }
}
