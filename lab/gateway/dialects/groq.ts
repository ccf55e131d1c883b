// Groq with gpt-oss, which sends its reasoning in `reasoning`.
// https://console.groq.com/docs/api-reference, https://console.groq.com/docs/spend-limits
// fields of messages: https://github.com/janhq/jan/issues/8136, https://github.com/tashfeenahmed/freellmapi/issues/1070
// failed calls: https://github.com/anomalyco/opencode/issues/1018, https://github.com/groq/groq-typescript/issues/103
// JSON with tools: https://github.com/vercel/ai/issues/10023
import {
  type Dialect,
  DRAWS_NOTHING,
  hasPicture,
  isRecord,
  openAiError,
  refuse,
  refuseMessages,
  SEES_NOTHING,
} from "../dialect.ts";

const UNKNOWN = ["reasoning_content", "reasoning_details", "thinking_blocks"];

export const groq: Dialect = {
  title: "Groq",
  address: "https://api.groq.com/openai/v1",
  chatModel: "openai/gpt-oss-120b",
  hasModelList: true,
  errorBody: openAiError,
  unknownPath: (path) =>
    refuse(
      404,
      `Unknown request URL: ${path}. Please check the URL for typos, or see the docs at https://console.groq.com/docs/`,
      { code: "unknown_url" },
    ),
  noCredit: refuse(400, "API access is blocked because the organization has reached its monthly spend limit.", {
    code: "blocked_api_access",
  }),
  thinking: { piece: (text) => ({ reasoning: text, channel: "analysis" }) },
  usageFields: (usage) => ({ x_groq: { id: "req_lab", usage } }),
  breaksOff: [
    {
      type: "raw",
      text: `event: error\ndata: ${JSON.stringify({
        error: {
          message: "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
          type: "invalid_request_error",
          code: "tool_use_failed",
          failed_generation: "Tool use failed: JSON does not match the expected schema for tool calls",
          status_code: 400,
        },
      })}\n\n`,
    },
  ],
  rules: [
    refuseMessages(
      (message) => UNKNOWN.some((name) => message[name] !== undefined),
      (index, message) => {
        const name = UNKNOWN.find((field) => message[field] !== undefined);
        return {
          status: 400,
          body: {
            error: {
              message: `'messages.${index}' : for 'role:${message.role}' the following must be satisfied[('messages.${index}' : property '${name}' is unsupported)]`,
              type: "invalid_request_error",
            },
          },
        };
      },
    ),
    refuseMessages(hasPicture, (index) => refuse(400, `messages[${index}].content must be a string`)),
    ({ tools, response_format: format }) =>
      tools?.length && isRecord(format) && format["type"] !== "text"
        ? refuse(400, "json mode cannot be combined with tool/function calling")
        : undefined,
  ],
  explained: { ...DRAWS_NOTHING, ...SEES_NOTHING },
};
