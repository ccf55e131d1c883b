import { z } from "zod";
import type { ToolCall, ToolMessage } from "../../src/gateway/chunks.ts";
import type { Step } from "../../src/port/sink.ts";
import { createLedger, type TurnLedger } from "../../src/tools/ledger.ts";
import { runRound } from "../../src/tools/round.ts";
import { defineTool, type Tool, type ToolContext } from "../../src/tools/tool.ts";
import { openEntries } from "./entries.ts";

/** A turn whose calls are recorded. */
export const LEDGER_TURN = {
  id: "turn",
  author: { id: "ada" },
  reply: { platform: "test" },
  conversationId: "test:a",
};

/** A turn as tools see it. */
export const TURN = {
  author: { id: "ada", name: "Ada" },
  reply: { platform: "test", channelId: "general" },
  id: "turn",
  mustAsk: false,
  nextPiece: () => ({ index: 0, id: "", after: undefined }),
};

/** The calls of a turn in memory. At first there are none. */
export function newLedger(): Promise<TurnLedger> {
  return createLedger({ keyv: openEntries(), allowed: openEntries(), ttlMs: 60_000 }).open(LEDGER_TURN);
}

export async function callTools(
  calls: readonly ToolCall[],
  tools: readonly Tool[],
  context: ToolContext,
  signal: AbortSignal,
  onStep: (step: Step) => void = () => {},
): Promise<ToolMessage[]> {
  const deps = { tools, context, onStep, isAllowed: async () => false, ledger: await newLedger() };
  const answer = { role: "assistant" as const, content: "", tool_calls: [...calls] };
  return (await runRound(answer, 1, deps, signal)).results;
}

export async function callTool(
  call: ToolCall,
  tools: readonly Tool[],
  context: ToolContext,
  signal: AbortSignal,
): Promise<ToolMessage> {
  const [result] = await callTools([call], tools, context, signal);
  if (result === undefined) throw new Error("There is no result.");
  return result;
}

/** A tool that accepts any arguments. People see its name while it runs. */
export function toTool(name: string, run: Tool["run"], more: Partial<Tool> = {}): Tool {
  const options = { name, description: name, schema: z.looseObject({}), timeoutMs: 60_000, describeCall: () => name };
  return { ...defineTool({ ...options, run }), ...more };
}

/** A part of a model's answer: the call of a tool. */
export function toCall(name: string, given: object = {}, id = "c") {
  const asked = { name, arguments: JSON.stringify(given) };
  return { tool_calls: [{ index: 0, id, type: "function" as const, function: asked }] };
}

/** The text that the model gets for one call of a tool. */
export async function askTool(tool: Tool, args: object, context: Partial<ToolContext> = {}): Promise<string> {
  const call = { id: "1", type: "function", function: { name: tool.name, arguments: JSON.stringify(args) } } as const;
  const { content } = await callTool(call, [tool], { conversationId: "c", ...context }, new AbortController().signal);
  return content;
}
