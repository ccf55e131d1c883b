// Mistral's API. https://docs.mistral.ai/api/ unknown fields: https://github.com/Gage-Technologies/mistral-go/pull/2,
// https://github.com/editor-code-assistant/eca/issues/231, https://github.com/avante-corp/avante.nvim/issues/2347,
// https://github.com/charmbracelet/crush/issues/1590 role order:
// https://github.com/datapizza-labs/datapizza-ai/issues/98, https://github.com/avante-corp/avante.nvim/pull/2695 call
// ids: https://github.com/editor-code-assistant/eca/issues/233, https://github.com/nearai/ironclaw/issues/1241 No
// source shows the body of a 402, so the body here looks like those of other errors.
import {
  callsOf,
  type Dialect,
  DRAWS_NOTHING,
  type ErrorBody,
  type Fields,
  type Refusal,
  refuseFields,
  refuseMessages,
} from "../dialect.ts";

const FIELDS = new Set(
  "model messages temperature top_p max_tokens stream stop random_seed response_format tools tool_choice presence_penalty frequency_penalty n prediction parallel_tool_calls prompt_mode reasoning_effort safe_prompt metadata guardrails prompt_cache_key".split(
    " ",
  ),
);
const MESSAGE_FIELDS: Readonly<Record<string, readonly string[]>> = {
  system: ["role", "content"],
  user: ["role", "content"],
  assistant: ["role", "content", "tool_calls", "prefix"],
  tool: ["role", "content", "tool_call_id", "name"],
};

const mistralError: ErrorBody = (_status, message, code) => toBody(message, "invalid_request_error", code);

function toBody(message: unknown, type: string, code: string | null): Fields {
  return { object: "error", message, type, param: null, code };
}

function refuseExtra(loc: Array<string | number>, input: unknown): Refusal {
  const detail = [{ type: "extra_forbidden", loc, msg: "Extra inputs are not permitted", input }];
  return { status: 422, body: toBody({ detail }, "invalid_request_error", null) };
}

export function toMistralId(id: string): string {
  return Buffer.from(id).toString("base64url").replace(/[-_]/g, "x").slice(-9).padStart(9, "0");
}

export const mistral: Dialect = {
  title: "Mistral",
  address: "https://api.mistral.ai/v1",
  chatModel: "mistral-medium-latest",
  hasModelList: true,
  webSearch: "refuses",
  errorBody: mistralError,
  unknownPath: () => ({ status: 404, body: { message: "no Route matched with those values" } }),
  noCredit: { status: 402, body: toBody("Payment required", "invalid_request_error", null) },
  usageFields: (usage) => ({ usage }),
  toAnswer: (answer) => ({ ...answer, calls: answer.calls.map((call) => ({ ...call, id: toMistralId(call.id) })) }),
  rules: [
    refuseFields(
      (name) => !FIELDS.has(name),
      (name) => refuseExtra(["body", name], null),
    ),
    refuseMessages(
      (message) => findExtra(message) !== undefined,
      (index, message) => refuseExtra(["body", "messages", index, message.role, findExtra(message) ?? ""], null),
    ),
    refuseMessages(
      ({ role }, index, messages) => role === "user" && messages[index - 1]?.role === "tool",
      () => ({
        status: 400,
        body: toBody("Unexpected role 'user' after role 'tool'", "invalid_request_message_order", "3230"),
      }),
    ),
    refuseMessages(
      (message) => callsOf(message).some(({ id }) => !/^[a-zA-Z0-9]{9}$/.test(id)),
      (_, message) => ({
        status: 400,
        body: toBody(
          `Tool call id was ${callsOf(message)[0]?.id} but must be a-z, A-Z, 0-9, with a length of 9.`,
          "invalid_function_call",
          "3280",
        ),
      }),
    ),
  ],
  explained: DRAWS_NOTHING,
};

function findExtra(message: Readonly<Fields> & { role: string }): string | undefined {
  const known = MESSAGE_FIELDS[message.role] ?? [];
  return Object.keys(message).find((name) => !known.includes(name));
}
