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

/** `{}` describes no parameters, as OpenAI's schema allows; whatever describes some is an object's, as the interface says. */
const parameters = z
  .looseObject({
    type: z.literal("object").optional(),
    properties: z.record(z.string(), z.union([z.looseObject({}), z.boolean()])).optional(),
    required: z.array(z.string()).optional(),
  })
  .refine((schema) => schema.type !== undefined || Object.keys(schema).length === 0, {
    path: ["type"],
    error: 'must be "object"',
  });

/** As OpenAI's schema says; the interface leaves it open. Calls keep the name that the model gave them. */
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
  z.enum(["auto", "none", "required"]),
  z.strictObject({ type: z.literal("function"), function: z.strictObject({ name }) }),
]);

/** The fields that say how to answer. */
const answering = {
  temperature: z.number().min(0).max(2).optional(),
  top_p: z.number().min(0).max(1).optional(),
  max_tokens: z.int().min(1).optional(),
  stop: z.union([z.string(), z.array(z.string())]).optional(),
  presence_penalty: z.number().min(-2).max(2).optional(),
  frequency_penalty: z.number().min(-2).max(2).optional(),
  response_format: z.looseObject({ type: name }).optional(),
};

/** Fields that somebody asked for: those of the interface are held to it. */
export const optionalFields = z.looseObject(answering);

/** The interface's request table, with its limits, less `stream`, which is always true. What it leaves open is left open. */
const chatRequest = z.strictObject({
  model: name,
  messages: z.array(message).min(1),
  ...answering,
  tools: z.array(tool).optional(),
  tool_choice: toolChoice.optional(),
  user: z.string().optional(),
});

/** The thirteen fields of the interface, less `stream`. */
export type ChatRequest = Omit<z.infer<typeof chatRequest>, "messages" | "tools"> & {
  messages: ChatMessage[];
  tools?: ToolDefinition[];
};

/** A request as it is sent, except that messages hold apart what a gateway attached to them. */
export type ChatBody = Omit<ChatRequest, "messages"> & {
  messages: WireMessage[];
  max_completion_tokens?: number;
  [field: string]: unknown;
};

/** Some gateways refuse an empty text beside calls, and take null. */
export type WireMessage = Exclude<ChatMessage, AssistantMessage> | WireAnswer;
export type WireAnswer = Omit<AssistantMessage, "content"> & { content: string | null };

/**
 * The body of the request, with nothing in it that the interface does not list, except for `extra` fields, which an
 * operator asked for and which the request does not set itself. Throws a `rejected` GatewayError that names every problem.
 */
export function toChatBody(request: ChatRequest, extra: Readonly<Record<string, unknown>> = {}): ChatBody {
  check(chatRequest, request, "The chat request");
  const { messages, tools, tool_choice, stop, ...rest } = request;
  const body: ChatBody = { ...rest, messages: messages.map(withoutEmptyCalls), stream: true };
  // Empty lists mean "none" to us, and are an error to many servers; so is a choice among no tools.
  if (stop !== undefined && stop.length > 0) body.stop = stop;
  if (tools !== undefined && tools.length > 0) {
    body.tools = tools;
    body.tool_choice = tool_choice;
  }
  for (const [field, value] of Object.entries(extra)) body[field] ??= value;
  return body;
}

/** The body as JSON for the route `from`, which gets back only what it attached itself. */
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

/** Throws a `rejected` GatewayError that lists in plain words what `schema` finds wrong with `value`. */
export function check(schema: z.ZodType, value: unknown, subject: string): void {
  const problems = findProblems(schema, value);
  if (problems.length === 0) return;
  throw new GatewayError("rejected", `${subject} was not sent`, { quote: `: ${problems.join("; ")}.` });
}

/** Lists in plain words what `schema` finds wrong with `value`, without any text of it. */
export function findProblems(schema: z.ZodType, value: unknown): string[] {
  return schema.safeParse(value, { reportInput: true }).error?.issues.map(describeIssue) ?? [];
}

/** JSON without lone surrogates, which are no characters and which servers refuse. */
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

type Issue = z.core.$ZodIssue;

/** One broken rule in plain words: where, what must be, and what is there unless that is somebody's text. */
function describeIssue(issue: Issue): string {
  const deeper = issue.code === "invalid_union" ? findBranch(issue) : undefined;
  if (deeper !== undefined) return describeIssue({ ...deeper, path: [...issue.path, ...deeper.path] });
  const where = issue.path.length === 0 ? "it" : describePath(issue.path);
  if (issue.code !== "unrecognized_keys" && issue.input === undefined) return `${where} is missing`;
  return `${where} ${describeRule(issue)}`;
}

function describeRule(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${describeType(issue.expected)}${describeInput(issue.input)}`;
    case "too_small":
      return issue.origin === "number" || issue.origin === "int"
        ? `must be at least ${issue.minimum}${describeInput(issue.input)}`
        : "must not be empty";
    case "too_big":
      return `must be at most ${issue.maximum}${describeInput(issue.input)}`;
    case "unrecognized_keys":
      return `has ${issue.keys.map((key) => JSON.stringify(key)).join(", ")}, which the interface does not list`;
    case "invalid_value":
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
    case "invalid_union":
      return `has none of the ${issue.discriminator === undefined ? "forms" : "values"} the interface lists`;
    case "invalid_format":
    case "custom":
      return issue.message;
    case "invalid_element":
    case "invalid_key":
    case "not_multiple_of":
    default:
      return "is not what the interface asks for";
  }
}

/** The form that a value nearly has, of those it may have: the problem lies inside it. */
function findBranch(issue: z.core.$ZodIssueInvalidUnion): Issue | undefined {
  if (issue.errors.length === 0) return undefined;
  return issue.errors.find((branch) => branch[0] !== undefined && isInside(branch[0]))?.[0];
}

function isInside(issue: Issue): boolean {
  return issue.path.length > 0 || issue.code === "unrecognized_keys" || issue.code === "too_small";
}

/** `messages[2].content[0].type`. */
function describePath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === "number") return `${text}[${step}]`;
    return text === "" ? String(step) : `${text}.${String(step)}`;
  }, "");
}

function describeType(expected: string): string {
  if (expected === "int") return "an integer";
  if (expected === "array") return "a list";
  return expected === "object" || expected === "record" ? "an object" : `a ${expected}`;
}

/** Numbers are shown; texts may be somebody's words. */
function describeInput(input: unknown): string {
  return typeof input === "number" ? `, not ${input}` : "";
}
