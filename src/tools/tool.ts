import { z } from "zod";
import { runWithin } from "../concurrency/deadlines.ts";
import type { ImagePart, ToolCall, ToolDefinition, ToolMessage } from "../gateway/chunks.ts";
import type { Permission } from "../policy/rules.ts";
import type { AttachmentRef, Author, ReplyAddress } from "../port/events.ts";
import { truncate } from "../text/truncate.ts";
import { fitArguments } from "./fit-arguments.ts";

/** Longest result that is handed to the model, in UTF-16 units. */
export const MAX_RESULT_CHARS = 20_000;
const MAX_TITLE_CHARS = 120;

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
  /** The first request is made although the model is left alone at the moment. */
  mustAsk: boolean;
  /** Begins one more piece for people to see. A turn taken up after a crash gets the same ids again. */
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
  readonly schema: z.ZodType;
  /** The arguments as JSON schema, for the model. */
  readonly parameters: Record<string, unknown>;
  readonly timeoutMs: number;
  /** Permissions that the person needs, besides the one for the tool itself. */
  readonly needs?: readonly Permission[];
  /** A second call might change something again, so a call that was begun is never made twice. */
  readonly acts: boolean;
  /** A person has to allow each call before it runs; the server that it belongs to is named to them. */
  readonly approval?: { server: string };
  /**
   * `args` is `schema`'s output. A `ToolError` is the tool's own answer that it failed, and the model reads it. After
   * any other rejection of a tool that acts, it is unknown whether the call was done.
   */
  run(args: unknown, context: ToolContext, signal: AbortSignal): Promise<string | ToolOutput>;
  /** Says to people what it does while it runs: "looking up the time in Tokyo". Untrusted text. */
  describeCall(args: unknown): string;
}

/** A result that is more than a text. */
export interface ToolOutput {
  text: string;
  /** Shown to the model in this turn, and not kept. */
  pictures: ImagePart[];
}

export interface ToolOptions<S extends z.ZodObject> {
  name: string;
  description: string;
  schema: S;
  timeoutMs: number;
  needs?: readonly Permission[];
  run(args: z.output<S>, context: ToolContext, signal: AbortSignal): Promise<string>;
  describeCall(args: z.output<S>): string;
}

/** A tool could not do what was asked. The message is for the model: what was wrong, what to do instead. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}

/** Makes a tool of ours: it changes nothing outside, or bears repeating. */
export function defineTool<S extends z.ZodObject>(options: ToolOptions<S>): Tool {
  const { name, description, schema, timeoutMs, needs } = options;
  return {
    name,
    description,
    schema,
    parameters: toParameters(schema),
    timeoutMs,
    acts: false,
    ...(needs !== undefined && { needs }),
    run: (args, context, signal) => options.run(args as z.output<S>, context, signal),
    describeCall: (args) => options.describeCall(args as z.output<S>),
  };
}

export function toDefinition({ name, description, parameters }: Tool): ToolDefinition {
  return { type: "function", function: { name, description, parameters } };
}

function toParameters(schema: z.ZodObject): Record<string, unknown> {
  // "input": an argument with a default is not required of the model.
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: "input" });
  return { type: "object", properties, required };
}

export interface ReadyCall {
  tool: Tool;
  args: unknown;
}

/** Returns the tool of a call with its arguments, or a sentence for the model that says what is wrong with the call. */
export function readCall(
  { function: { name, arguments: json } }: ToolCall,
  tools: readonly Tool[],
): ReadyCall | string {
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool === undefined) {
    const known = tools.map((candidate) => candidate.name).join(", ") || "none";
    return `There is no tool ${JSON.stringify(truncate(name, 64))}. The tools are: ${known}.`;
  }
  let given: unknown;
  try {
    given = parseArguments(json);
  } catch {
    return `Not run: the arguments of ${name} are not valid JSON. Call it again with one JSON object.`;
  }
  const { success, data, error } = tool.schema.safeParse(given);
  if (success) return { tool, args: data };
  const repaired = tool.schema.safeParse(fitArguments(given, tool.parameters));
  if (repaired.success) return { tool, args: repaired.data };
  const problems = error.issues.map(({ path, message }) => [path.join("."), message].filter(Boolean).join(": "));
  return `Not run: the arguments of ${name} do not fit. ${problems.join("; ")}. Call it again with corrected arguments.`;
}

/** Models send nothing for "no arguments", and some encode the object a second time, as a string of JSON. */
function parseArguments(json: string): unknown {
  if (json.trim() === "") return {};
  const parsed: unknown = JSON.parse(json);
  return (typeof parsed === "string" ? parseArguments(parsed) : parsed) ?? {};
}

export interface CallOutcome {
  /** `unknown`: it acts, and nobody can say whether it did. */
  state: "done" | "failed" | "unknown";
  text: string;
  pictures: ImagePart[];
}

/** Runs a call. Rejects only with the signal's reason; a failure or the tool's own time limit become words for the model. */
export async function runCall(
  { tool, args }: ReadyCall,
  context: ToolContext,
  signal: AbortSignal,
): Promise<CallOutcome> {
  signal.throwIfAborted();
  try {
    const output = await runWithin(tool.timeoutMs, (signal) => tool.run(args, context, signal), signal);
    const { text, pictures } = typeof output === "string" ? { text: output, pictures: [] } : output;
    return { state: "done", text: cutResult(text), pictures };
  } catch (error) {
    signal.throwIfAborted();
    const isTold = error instanceof ToolError;
    if (!isTold) context.onFailure?.(tool.name, error);
    if (tool.acts && !isTold) return { state: "unknown", text: describeUnknown(tool.name), pictures: [] };
    return { state: "failed", text: cutResult(describeFailure(tool, error)), pictures: [] };
  }
}

/** Tells the model of a call that may have been done. */
export function describeUnknown(name: string): string {
  return `It is not known whether ${name} was done: it was begun, and no result came. It was not run again. Do not call it again. Say that it is not known, and that a person should look before it is run again.`;
}

function describeFailure({ name }: Tool, error: unknown): string {
  if (error instanceof ToolError) return error.message;
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return `${name} gave no result in time and was given up. Answer without it, and say so.`;
  }
  // The message of an unexpected error may name what neither the model nor the channel should see.
  return `${name} failed for a reason of its own. Answer without it, and say so.`;
}

export function toResult({ id }: ToolCall, text: string): ToolMessage {
  return { role: "tool", tool_call_id: id, content: text };
}

function cutResult(given: string): string {
  const text = given.toWellFormed();
  // Some gateways refuse a message without content.
  if (text.trim() === "") return "(no output)";
  return truncate(text, MAX_RESULT_CHARS, `\n[cut here: the result has ${text.length} characters]`);
}

/** Says to people what a call does, in one short line. */
export function describeCall({ tool, args }: ReadyCall): string {
  try {
    return toStepTitle(tool.describeCall(args)) || `using ${tool.name}`;
  } catch {
    return `using ${tool.name}`;
  }
}

export function toStepTitle(text: string): string {
  return truncate(text.replace(/[\p{C}\s]+/gu, " ").trim(), MAX_TITLE_CHARS);
}
