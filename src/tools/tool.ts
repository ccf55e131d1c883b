import { z } from "zod";
import { mapBounded, runWithin } from "../concurrency/deadlines.ts";
import type { ToolCall, ToolDefinition, ToolMessage } from "../gateway/chunks.ts";
import type { AttachmentRef, Author, ReplyAddress } from "../port/events.ts";
import type { Step } from "../port/sink.ts";

/** Longest result that is handed to the model, in UTF-16 units. */
export const MAX_RESULT_CHARS = 20_000;
const MAX_TITLE_CHARS = 120;
const MAX_PARALLEL_CALLS = 4;
const MAX_CALLS_PER_ROUND = 16;

export interface ToolContext {
  conversationId: string;
  /** The oldest entry of the history that the model sees in this turn; absent when it sees all of it. */
  oldestShownId?: string;
  /** Files of the messages that the model sees in this turn, oldest first. */
  files?: readonly AttachmentRef[];
  /** The turn that the tool works for; absent outside of one. */
  turn?: ToolTurn;
  /** Shows people what is being waited for, in place of what `describeCall` says. */
  onProgress?(text: string): void;
  /** Told of failures that are not the model's doing, for the log. */
  onFailure?(toolName: string, error: unknown): void;
}

/** The turn, for a tool that writes to its place itself. */
export interface ToolTurn {
  author: Author;
  reply: ReplyAddress;
  /**
   * One more thing that the turn makes for people to see. A turn that is taken up after a crash comes to the same ids
   * again, one that is asked anew to others.
   */
  nextPiece(): TurnPiece;
}

export interface TurnPiece {
  /** Its place among those of this attempt, from 0 on. */
  index: number;
  id: string;
  /** The entry it follows in the history: the piece before it, or the question. */
  after: string | undefined;
}

/** Something the model may call. Made by `defineTool`, which ties the arguments to the schema. */
export interface Tool {
  /** Letters, digits, `_` and `-`. */
  readonly name: string;
  /** Tells the model what the tool does and when to use it. */
  readonly description: string;
  readonly schema: z.ZodObject;
  readonly timeoutMs: number;
  /**
   * `args` is what `schema` made of the model's arguments. Rejects with a `ToolError` when the model should
   * know why; any other rejection is told to it only as a failure.
   */
  run(args: unknown, context: ToolContext, signal: AbortSignal): Promise<string>;
  /** Says to people what it does while it runs: "looking up the time in Tokyo". Untrusted text. */
  describeCall(args: unknown): string;
}

export interface ToolOptions<S extends z.ZodObject> {
  name: string;
  description: string;
  schema: S;
  timeoutMs: number;
  run(args: z.output<S>, context: ToolContext, signal: AbortSignal): Promise<string>;
  describeCall(args: z.output<S>): string;
}

/** A tool could not do what was asked. The message is for the model: what was wrong, what to do instead. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}

export function defineTool<S extends z.ZodObject>(options: ToolOptions<S>): Tool {
  const { name, description, schema, timeoutMs } = options;
  return {
    name,
    description,
    schema,
    timeoutMs,
    run: (args, context, signal) => options.run(args as z.output<S>, context, signal),
    describeCall: (args) => options.describeCall(args as z.output<S>),
  };
}

/** The tool as the gateway is told of it. Only the fields of JSON schema that the interface lists at the top. */
export function toDefinition({ name, description, schema }: Tool): ToolDefinition {
  // "input": an argument with a default is not required of the model.
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: "input" });
  return { type: "function", function: { name, description, parameters: { type: "object", properties, required } } };
}

/**
 * Runs one call the model asked for. Never rejects except with the signal's reason: an unknown tool, arguments
 * that are not JSON or break the schema, a failure or the tool's own time limit come back as the text of the
 * result, in words the model can act on.
 */
export async function callTool(
  call: ToolCall,
  tools: readonly Tool[],
  context: ToolContext,
  signal: AbortSignal,
): Promise<ToolMessage> {
  signal.throwIfAborted();
  const ready = readCall(call, tools);
  return typeof ready === "string" ? toResult(call, ready) : (await runCall(call, ready, context, signal)).result;
}

/**
 * Runs the calls of one round side by side. Results come in the order of the calls, one for each, also where ids
 * repeat. Rejects only with the signal's reason. `onStep` is told of each call that runs, by its place in the round,
 * and of what becomes of it; not of one that the signal ends.
 */
export async function callTools(
  calls: readonly ToolCall[],
  tools: readonly Tool[],
  context: ToolContext,
  signal: AbortSignal,
  onStep: (step: Step) => void,
): Promise<ToolMessage[]> {
  return mapBounded(calls, MAX_PARALLEL_CALLS, async (call, index) => {
    signal.throwIfAborted();
    if (index >= MAX_CALLS_PER_ROUND) {
      return toResult(call, `Not run: only ${MAX_CALLS_PER_ROUND} calls are run at once. Call again if it is needed.`);
    }
    const ready = readCall(call, tools);
    if (typeof ready === "string") return toResult(call, ready);
    let step: Step = { id: String(index), title: describe(ready), state: "running" };
    const tell = (news: Partial<Step>) => onStep((step = { ...step, ...news }));
    tell({});
    const onProgress = (text: string) => tell({ title: toTitle(text) || step.title });
    const { isFailed, result } = await runCall(call, ready, { ...context, onProgress }, signal);
    tell({ state: isFailed ? "failed" : "done" });
    return result;
  });
}

interface ReadyCall {
  tool: Tool;
  args: unknown;
}

/** Returns the tool with its arguments, or a sentence for the model that says what is wrong with the call. */
function readCall({ function: { name, arguments: json } }: ToolCall, tools: readonly Tool[]): ReadyCall | string {
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool === undefined) {
    const known = tools.map((candidate) => candidate.name).join(", ") || "none";
    return `There is no tool ${JSON.stringify(name.slice(0, 64))}. The tools are: ${known}.`;
  }
  let given: unknown;
  try {
    given = parseArguments(json);
  } catch {
    return `Not run: the arguments of ${name} are not valid JSON. Call it again with one JSON object.`;
  }
  const { success, data, error } = tool.schema.safeParse(given);
  if (success) return { tool, args: data };
  const problems = error.issues.map(({ path, message }) => [path.join("."), message].filter(Boolean).join(": "));
  return `Not run: the arguments of ${name} do not fit. ${problems.join("; ")}. Call it again with corrected arguments.`;
}

/** Models send nothing for "no arguments", and some encode the object a second time, as a string of JSON. */
function parseArguments(json: string): unknown {
  if (json.trim() === "") return {};
  const parsed: unknown = JSON.parse(json);
  return (typeof parsed === "string" ? parseArguments(parsed) : parsed) ?? {};
}

async function runCall(
  call: ToolCall,
  { tool, args }: ReadyCall,
  context: ToolContext,
  signal: AbortSignal,
): Promise<{ result: ToolMessage; isFailed: boolean }> {
  signal.throwIfAborted();
  try {
    const text = await runWithin(tool.timeoutMs, (signal) => tool.run(args, context, signal), signal);
    return { result: toResult(call, text), isFailed: false };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ToolError)) context.onFailure?.(tool.name, error);
    return { result: toResult(call, describeFailure(tool, error)), isFailed: true };
  }
}

function describeFailure({ name }: Tool, error: unknown): string {
  if (error instanceof ToolError) return error.message;
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return `${name} gave no result in time and was given up. Answer without it, and say so.`;
  }
  // The message of an unexpected error may name what neither the model nor the channel should see.
  return `${name} failed for a reason of its own. Answer without it, and say so.`;
}

function toResult({ id }: ToolCall, text: string): ToolMessage {
  return { role: "tool", tool_call_id: id, content: cutResult(text.toWellFormed()) };
}

function cutResult(text: string): string {
  // Some gateways refuse a message without content.
  if (text.trim() === "") return "(no output)";
  if (text.length <= MAX_RESULT_CHARS) return text;
  const mark = `\n[cut here: the result has ${text.length} characters]`;
  // A surrogate pair cut in two leaves half a character.
  return `${text.slice(0, MAX_RESULT_CHARS - mark.length).replace(/[\uD800-\uDBFF]$/, "")}${mark}`;
}

function describe({ tool, args }: ReadyCall): string {
  try {
    return toTitle(tool.describeCall(args)) || `using ${tool.name}`;
  } catch {
    return `using ${tool.name}`;
  }
}

/** One short line. */
function toTitle(text: string): string {
  const words = text.replace(/[\p{C}\s]+/gu, " ").trim();
  return words.length <= MAX_TITLE_CHARS ? words : `${words.slice(0, MAX_TITLE_CHARS - 1).toWellFormed()}…`;
}
