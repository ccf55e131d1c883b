import { z } from "zod";
import { toInvalidRequest } from "./errors.ts";
import { checkFields } from "./field-check.ts";

const textPart = z.strictObject({ type: z.literal("text"), text: z.string() });
const imagePart = z.strictObject({
  type: z.literal("image_url"),
  image_url: z.strictObject({ url: z.string().min(1), detail: z.enum(["auto", "low", "high"]).nullish() }),
});
const text = z.union([z.string(), z.array(textPart).min(1)]);
const name = z.string().min(1).nullish();

/** SDKs send an answer's calls back with the additional fields `index` and `parsed_arguments`. */
const toolCall = z.strictObject({
  id: z.string().min(1),
  type: z.literal("function"),
  function: z.strictObject({
    name: z.string().min(1),
    arguments: z.string(),
    parsed_arguments: z.unknown().optional(),
  }),
  index: z.int().nullish(),
});

/** The roles and their fields. SDKs send an answer's fields back; the sandbox accepts and ignores these fields. */
const message = z.discriminatedUnion("role", [
  z.strictObject({ role: z.literal("system"), content: text, name }),
  z.strictObject({
    role: z.literal("user"),
    content: z.union([z.string(), z.array(z.discriminatedUnion("type", [textPart, imagePart])).min(1)]),
    name,
  }),
  z.strictObject({
    role: z.literal("assistant"),
    content: text.nullish(),
    name,
    tool_calls: z.array(toolCall).min(1).nullish(),
    refusal: z.string().nullish(),
    annotations: z.array(z.unknown()).nullish(),
    parsed: z.unknown().optional(),
    audio: z.null().optional(),
    function_call: z.null().optional(),
    reasoning_content: z.string().nullish(),
    reasoning: z.string().nullish(),
    reasoning_details: z.array(z.unknown()).nullish(),
  }),
  z.strictObject({ role: z.literal("tool"), content: text, tool_call_id: z.string().min(1), name }),
]);

const FUNCTION_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const functionName = z.string().regex(FUNCTION_NAME, "must be 1 to 64 letters, digits, underscores or dashes.");

/** `{}` describes no parameters, as in OpenAI's schema. By the interface, another schema must describe an object. */
const parameters = z
  .looseObject({
    type: z.literal("object").optional(),
    properties: z.record(z.string(), z.union([z.looseObject({}), z.boolean()])).optional(),
    required: z.array(z.string()).optional(),
  })
  .refine((schema) => schema.type !== undefined || Object.keys(schema).length === 0, {
    path: ["type"],
    error: 'must be "object".',
  });

const tool = z.strictObject({
  type: z.literal("function"),
  function: z.strictObject({
    name: functionName,
    description: z.string().nullish(),
    parameters: parameters.nullish(),
    strict: z.boolean().nullish(),
  }),
});

const responseFormat = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text") }),
  // Some clients send the schema in this field, which some gateways accept.
  z.strictObject({ type: z.literal("json_object"), schema: z.record(z.string(), z.unknown()).nullish() }),
  z.strictObject({
    type: z.literal("json_schema"),
    json_schema: z.strictObject({
      name: functionName,
      schema: z.record(z.string(), z.unknown()),
      description: z.string().nullish(),
      strict: z.boolean().nullish(),
    }),
  }),
]);

/** Fields that common SDKs send although the interface lacks them. The sandbox checks their types and ignores them. */
const beyond = {
  stream_options: z
    .strictObject({ include_usage: z.boolean().nullish(), include_obfuscation: z.boolean().nullish() })
    .nullish(),
  n: z.literal(1).nullish(),
  seed: z.int().nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
  store: z.boolean().nullish(),
  logprobs: z.literal(false).nullish(),
  top_logprobs: z.null().optional(),
  logit_bias: z.record(z.string(), z.number().min(-100).max(100)).nullish(),
  modalities: z.array(z.literal("text")).min(1).nullish(),
  reasoning_effort: z.string().nullish(),
  verbosity: z.string().nullish(),
  service_tier: z.string().nullish(),
  prediction: z.strictObject({ type: z.literal("content"), content: text }).nullish(),
  prompt_cache_key: z.string().nullish(),
  prompt_cache_retention: z.string().nullish(),
  safety_identifier: z.string().nullish(),
};

const chatRequest = z.strictObject({
  model: z.string().min(1),
  messages: z.array(message).min(1),
  stream: z.boolean().nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  max_tokens: z.int().min(1).nullish(),
  stop: z.union([z.string().min(1), z.array(z.string().min(1))]).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  response_format: responseFormat.nullish(),
  tools: z.array(tool).max(128).nullish(),
  tool_choice: z
    .union([
      z.enum(["none", "auto", "required"]),
      z.strictObject({ type: z.literal("function"), function: z.strictObject({ name: z.string() }) }),
    ])
    .nullish(),
  user: z.string().nullish(),
  ...beyond,
});

export type SandboxChatRequest = z.infer<typeof chatRequest>;
export type SandboxMessage = SandboxChatRequest["messages"][number];
export type SandboxTool = z.infer<typeof tool>;

/** Checks each field, then the rules between fields. Throws a 400. */
export function readChatRequest(body: Record<string, unknown>): SandboxChatRequest {
  const request = checkFields(chatRequest, body);
  requireTools(request);
  requireAnswered(request.messages);
  if (request.stream_options && request.stream !== true) {
    throw toInvalidRequest("stream_options is only allowed when stream is true.", "invalid_value", "stream_options");
  }
  return request;
}

function requireTools({ tools, tool_choice: choice, parallel_tool_calls: parallel }: SandboxChatRequest): void {
  if (!tools?.length) {
    const orphan = choice ? "tool_choice" : typeof parallel === "boolean" ? "parallel_tool_calls" : undefined;
    if (orphan === undefined) return;
    throw toInvalidRequest(`${orphan} is only allowed together with tools.`, "invalid_value", orphan);
  }
  const names = tools.map((tool) => tool.function.name);
  const repeated = names.findIndex((name, index) => names.indexOf(name) !== index);
  if (repeated !== -1) {
    const param = `tools[${repeated}].function.name`;
    throw toInvalidRequest(
      `${param} repeats ${names[repeated]}: each tool needs its own name.`,
      "invalid_value",
      param,
    );
  }
  if (choice && typeof choice === "object" && !names.includes(choice.function.name)) {
    const param = "tool_choice.function.name";
    throw toInvalidRequest(`${param} names ${choice.function.name}, which is not among tools.`, "invalid_value", param);
  }
}

/**
 * Checks the order of tool messages. A `tool` message must answer a call of the assistant message before it, and only
 * once. Every call needs an answer before the next user or assistant message. Throws a 400 that names the message.
 */
function requireAnswered(messages: readonly SandboxMessage[]): void {
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
