import { z } from "zod";
import type { Attached } from "./attached.ts";
import type { AssistantMessage, ChatMessage, ToolDefinition } from "./chunks.ts";
import { GatewayError } from "./errors.ts";

const name = z.string().min(1);

const part = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text: z.string() }),
  z.strictObject({
    type: z.literal("image_url"),
    image_url: z.strictObject({
      url: z.string().regex(/^(?:https?:\/\/|data:image\/)/i, "must be an http(s) or data:image address"),
      detail: z.enum(["auto", "low", "high"]).optional(),
    }),
  }),
]);

const content = z.union([z.string(), z.array(part).min(1)]);

const attached = z.object({ from: z.string(), fields: z.record(z.string(), z.unknown()) }).optional();

const toolCall = z.strictObject({
  id: name,
  type: z.literal("function"),
  function: z.strictObject({ name, arguments: z.string() }),
  attached,
});

const message = z.discriminatedUnion("role", [
  z.strictObject({ role: z.literal("system"), content, name: name.optional() }),
  z.strictObject({ role: z.literal("user"), content, name: name.optional() }),
  z.strictObject({
    role: z.literal("assistant"),
    content,
    name: name.optional(),
    tool_calls: z.array(toolCall).optional(),
    attached,
  }),
  z.strictObject({ role: z.literal("tool"), content, name: name.optional(), tool_call_id: name }),
]);

/** As in OpenAI's schema, `{}` means no parameters. The interface requires type `object` for any parameters. */
const parameters = z
  .looseObject({
    type: z.literal("object").optional(),
    properties: z.record(z.string(), z.union([z.boolean(), z.looseObject({})])).optional(),
    required: z.array(z.string()).optional(),
  })
  .refine((schema) => schema.type !== undefined || Object.keys(schema).length === 0, {
    path: ["type"],
    error: 'must be "object"',
  });

/** The rule for names in OpenAI's schema; the interface has none. Calls keep the name that the model wrote. */
const functionName = name.regex(/^[a-zA-Z0-9_-]{1,64}$/, "must be 1 to 64 letters, digits, underscores or dashes");

const tool = z.strictObject({
  type: z.literal("function"),
  function: z.strictObject({
    name: functionName,
    description: z.string().optional(),
    parameters: parameters.optional(),
  }),
});

const toolChoice = z.union([
  z.strictObject({ type: z.literal("function"), function: z.strictObject({ name }) }),
  z.enum(["auto", "none", "required"]),
]);

const answering = {
  temperature: z.number().min(0).max(2).optional(),
  top_p: z.number().min(0).max(1).optional(),
  max_tokens: z.int().min(1).optional(),
  stop: z.union([z.string(), z.array(z.string())]).optional(),
  presence_penalty: z.number().min(-2).max(2).optional(),
  frequency_penalty: z.number().min(-2).max(2).optional(),
  response_format: z.looseObject({ type: name }).optional(),
  web_search_options: z.looseObject({}).optional(),
};

/** Additional fields. Fields that the interface defines must follow its rules. */
export const optionalFields = z.looseObject(answering);

/** The interface's table of request fields with its limits, without `stream`, which is always true. */
const chatRequest = z.strictObject({
  model: name,
  messages: z.array(message).min(1),
  ...answering,
  tools: z.array(tool).optional(),
  tool_choice: toolChoice.optional(),
  user: z.string().optional(),
});

/** The interface's thirteen fields except `stream`. */
export type ChatRequest = Omit<z.infer<typeof chatRequest>, "messages" | "tools"> & {
  messages: ChatMessage[];
  tools?: ToolDefinition[];
};

/** A request before it becomes JSON. Each message holds the gateway's attached fields separately. */
export type ChatBody = Omit<ChatRequest, "messages"> & {
  messages: WireMessage[];
  max_completion_tokens?: number;
  [field: string]: unknown;
};

/** A message as it is sent. An answer's text can be null, because some gateways refuse an empty text next to calls. */
export type WireMessage = Exclude<ChatMessage, AssistantMessage> | WireAnswer;
export type WireAnswer = Omit<AssistantMessage, "content"> & { content: string | null };

/**
 * Builds the body from the interface's fields, and from the operator's `extra` fields that the request does not set.
 * Throws a `rejected` GatewayError that names every problem.
 */
export function toChatBody(request: ChatRequest, extra: Readonly<Record<string, unknown>> = {}): ChatBody {
  check(chatRequest, request, "The chat request");
  const { messages, tools, tool_choice, stop, ...rest } = request;
  const body: ChatBody = { ...rest, messages: messages.map(withoutEmptyCalls), stream: true };
  // An empty list means "none" in Palaver, but many servers reject it. They also reject `tool_choice` without tools.
  if (stop !== undefined && stop.length > 0) body.stop = stop;
  if (tools !== undefined && tools.length > 0) {
    body.tools = tools;
    body.tool_choice = tool_choice;
  }
  for (const [field, value] of Object.entries(extra)) body[field] ??= value;
  return body;
}

/** Returns the body as JSON for the route `from`, with only the attached fields that came from this route. */
export function toChatJson({ messages, ...body }: ChatBody, from: string): string {
  return toJson({ ...body, messages: messages.map((message) => toWire(message, from)) });
}

function toWire(message: WireMessage, from: string): object {
  if (message.role !== "assistant") return message;
  const { attached, tool_calls: calls, ...rest } = message;
  const own = calls?.map(({ attached: more, ...call }) => ({ ...call, ...fieldsOf(more, from) }));
  return { ...rest, ...(own !== undefined && { tool_calls: own }), ...fieldsOf(attached, from) };
}

function fieldsOf(attached: Attached | undefined, from: string): Readonly<Record<string, unknown>> {
  return attached?.from === from ? attached.fields : {};
}

/** Throws a `rejected` GatewayError that lists all problems of `value`. */
export function check(schema: z.ZodType, value: unknown, subject: string): void {
  const problems = findProblems(schema, value);
  if (problems.length === 0) return;
  throw new GatewayError("rejected", `${subject} was not sent`, { quote: `: ${problems.join("; ")}.` });
}

/** Lists the problems that `schema` finds. Quotes nothing from `value`. */
export function findProblems(schema: z.ZodType, value: unknown): string[] {
  return schema.safeParse(value).error?.issues.map((issue) => describeIssue(issue)) ?? [];
}

function describeIssue(issue: z.core.$ZodIssue, outer: readonly PropertyKey[] = []): string {
  const path = [...outer, ...issue.path];
  // A union reports the problems of each form; the last form allows the most.
  const [inner] = (issue.code === "invalid_union" && issue.errors.at(-1)) || [];
  if (inner !== undefined) return describeIssue(inner, path);
  return path.length === 0 ? issue.message : `${z.core.toDotPath(path)}: ${issue.message}`;
}

/** Writes JSON without lone surrogates, which are not characters and which servers refuse. */
export function toJson(value: unknown): string {
  try {
    return JSON.stringify(value, (_key, item: unknown) => (typeof item === "string" ? item.toWellFormed() : item));
  } catch (error) {
    throw new GatewayError("rejected", "The request was not sent: it cannot be written as JSON.", { cause: error });
  }
}

function withoutEmptyCalls(message: ChatRequest["messages"][number]): ChatRequest["messages"][number] {
  if (message.role !== "assistant" || message.tool_calls?.length !== 0) return message;
  const { tool_calls: _none, ...rest } = message;
  return rest;
}
