import { z } from "zod";
import { runWithin } from "../concurrency/deadlines.ts";
import type { ImagePart, ToolCall, ToolDefinition, ToolMessage } from "../gateway/chunks.ts";
import type { Permission } from "../policy/rules.ts";
import type { AttachmentRef, Author, ReplyAddress } from "../port/events.ts";
import type { Services } from "../services/services.ts";
import { joinSources, type Source } from "../text/sources.ts";
import { truncate } from "../text/truncate.ts";
import { fitArguments } from "./fit-arguments.ts";

/** Maximum length of a result for the model, in UTF-16 units. */
export const MAX_RESULT_CHARS = 20_000;
const MAX_TITLE_CHARS = 120;

export interface ToolContext {
  conversationId: string;
  /** The oldest history entry in the model's request. Absent: the request has all entries. */
  oldestShownId?: string;
  /** Files in the messages of the model's request, oldest first. */
  files?: readonly AttachmentRef[];
  /** The turn that called the tool; absent outside a turn. */
  turn?: ToolTurn;
  /** Replaces the text of `describeCall` with the current progress. */
  onProgress?(text: string): void;
  /** Reports what a search found, so that the answer can be explained later. */
  onFound?(found: FoundPlaces): void;
  /** Called for the log with each failure that the model did not cause. */
  onFailure?(toolName: string, error: unknown): void;
}

/** The hits of a search without their text, and the number of withheld hits. */
export type FoundPlaces = z.infer<typeof foundPlaces>;

export const foundPlaces = z.object({
  /** In the form that `Adapter.mayShow` accepts. */
  hits: z.array(z.object({ placeId: z.string(), link: z.string() })),
  withheld: z.number(),
});

/** The turn of the call, for a tool that posts messages itself. */
export interface ToolTurn {
  id: string;
  author: Author;
  reply: ReplyAddress;
  /** True if the turn is a run of a schedule. */
  isScheduled?: true;
  /** If true, the first request is made even while the model is paused. */
  mustAsk: boolean;
  /** Starts another visible piece of the answer. After a crash, the resumed turn gets the same ids. */
  nextPiece(): TurnPiece;
}

export interface TurnPiece {
  /** Index among the pieces of this attempt, starting at 0. */
  index: number;
  id: string;
  /** Id of the history entry before this piece: the previous piece or the question. */
  after: string | undefined;
}

/** A tool that the model can call. Create it with `defineTool`, which derives the arguments' type from the schema. */
export interface Tool {
  /** Letters, digits, `_` and `-`. */
  readonly name: string;
  /** Tells the model what the tool does and when to use it. */
  readonly description: string;
  readonly schema: z.ZodType;
  /** The JSON schema of the arguments, for the model. */
  readonly parameters: Record<string, unknown>;
  readonly timeoutMs: number;
  /** Permissions that the user needs in addition to the one for the tool. */
  readonly needs?: readonly Permission[];
  /** True if the result is only for this attempt: it is not stored, and a resumed turn makes the call again. */
  readonly isFleeting?: true;
  /** True if a second call could change something again. Such a call is never repeated. */
  readonly acts: boolean;
  /** If set, a user must permit each call before it runs, and sees the server's name. */
  readonly approval?: { server: string };
  /**
   * `args` is the output of `schema`. Rejects with a `ToolError` to tell the model why the call failed. After another
   * error of a tool that acts, no one knows whether the call had an effect.
   */
  run(args: unknown, context: ToolContext, signal: AbortSignal): Promise<string | ToolOutput>;
  /** Describes a running call for people, for example "looking up the time in Tokyo". The description is untrusted. */
  describeCall(args: unknown): string;
}

export interface ToolOutput {
  text: string;
  /** Images for the model, which gets them only in this turn. */
  pictures?: ImagePart[];
  /** The pages that the result comes from, shown under the answer. */
  sources?: Source[];
}

export interface ToolDeps extends Services {
  /** Hosts and origins whose pages the model can read. */
  fetchUrlHosts: readonly string[];
}

export interface ToolOptions<S extends z.ZodObject> {
  name: string;
  description: string;
  schema: S;
  timeoutMs: number;
  needs?: readonly Permission[];
  isFleeting?: true;
  run(args: z.output<S>, context: ToolContext, signal: AbortSignal): Promise<string | ToolOutput>;
  describeCall(args: z.output<S>): string;
}

/** The tool could not do its task. The message tells the model what is wrong and what to do instead. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}

/** Creates a built-in tool, which must change nothing or be safe to repeat. */
export function defineTool<S extends z.ZodObject>(options: ToolOptions<S>): Tool {
  const { name, description, schema, timeoutMs, needs, isFleeting } = options;
  return {
    name,
    description,
    schema,
    parameters: toParameters(schema),
    timeoutMs,
    acts: false,
    ...(needs !== undefined && { needs }),
    ...(isFleeting && { isFleeting }),
    run: (args, context, signal) => options.run(args as z.output<S>, context, signal),
    describeCall: (args) => options.describeCall(args as z.output<S>),
  };
}

export function toDefinition({ name, description, parameters }: Tool): ToolDefinition {
  return { type: "function", function: { name, description, parameters } };
}

function toParameters(schema: z.ZodObject): Record<string, unknown> {
  // Use "input", because an argument with a default is optional for the model.
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: "input" });
  return { type: "object", properties, required };
}

export interface ReadyCall {
  tool: Tool;
  args: unknown;
}

/** Returns a call's tool and arguments, or a sentence that tells the model what is wrong with the call. */
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
  return `Not run: the arguments of ${name} are invalid. ${problems.join("; ")}. Call it again with corrected arguments.`;
}

/** Parses a call's arguments. Some models send nothing for "no arguments", and some encode the object twice. */
function parseArguments(json: string): unknown {
  if (json.trim() === "") return {};
  const parsed: unknown = JSON.parse(json);
  return (typeof parsed === "string" ? parseArguments(parsed) : parsed) ?? {};
}

export interface CallOutcome {
  /** `unknown`: the tool can change something, and no one knows whether it did. */
  state: "done" | "failed" | "unknown";
  text: string;
  pictures: ImagePart[];
  sources: Source[];
}

/** Maximum number of sources of one call, because a search returns many. */
const MAX_SOURCES = 5;
const NOTHING = { pictures: [], sources: [] };

/** Runs a call. A failure or a timeout becomes a text for the model. Rejects only with the signal's reason. */
export async function runCall(
  { tool, args }: ReadyCall,
  context: ToolContext,
  signal: AbortSignal,
): Promise<CallOutcome> {
  signal.throwIfAborted();
  try {
    const output = await runWithin(tool.timeoutMs, (signal) => tool.run(args, context, signal), signal);
    const { text, pictures = [], sources = [] } = typeof output === "string" ? { text: output } : output;
    return { state: "done", text: truncateResult(text), pictures, sources: joinSources(sources).slice(0, MAX_SOURCES) };
  } catch (error) {
    signal.throwIfAborted();
    const isToolError = error instanceof ToolError;
    if (!isToolError) context.onFailure?.(tool.name, error);
    if (tool.acts && !isToolError) return { ...NOTHING, state: "unknown", text: describeUnknown(tool.name) };
    return { ...NOTHING, state: "failed", text: truncateResult(describeFailure(tool, error)) };
  }
}

/** Tells the model that no one knows whether a call had an effect. */
export function describeUnknown(name: string): string {
  return `It is unknown whether ${name} was done: the call started, but returned no result. It was not retried. Do not call it again. Say that the outcome is unknown, and that someone should check before it is run again.`;
}

function describeFailure({ name }: Tool, error: unknown): string {
  if (error instanceof ToolError) return error.message;
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return `${name} timed out. Answer without it, and say so.`;
  }
  // Hide an unexpected error's message, because it can contain details for neither the model nor the channel.
  return `${name} failed with an internal error. Answer without it, and say so.`;
}

export function toResult({ id }: ToolCall, text: string): ToolMessage {
  return { role: "tool", tool_call_id: id, content: text };
}

function truncateResult(given: string): string {
  const text = given.toWellFormed();
  // Some gateways reject a message without content.
  if (text.trim() === "") return "(no output)";
  return truncate(text, MAX_RESULT_CHARS, `\n[truncated: the whole result has ${text.length} characters]`);
}

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
