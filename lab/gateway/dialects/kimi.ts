// Moonshot's Kimi in thinking mode.
// https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model
// reasoning_content: https://github.com/continuedev/continue/issues/11711, https://github.com/Lapis0x0/obsidian-yolo/pull/243
// temperature: https://github.com/Mai-with-u/MaiBot/issues/1538, https://github.com/iOfficeAI/gemini-cli-pro/pull/30
import {
  callsOf,
  type Dialect,
  DRAWS_NOTHING,
  FIXED_TEMPERATURE,
  openAiError,
  refuse,
  refuseFields,
  refuseMessages,
} from "../dialect.ts";

const FIXED: Readonly<Record<string, number>> = { temperature: 1, top_p: 0.95 };

export const kimi: Dialect = {
  title: "Kimi",
  address: "https://api.moonshot.ai/v1",
  chatModel: "kimi-k2.5",
  hasModelList: true,
  errorBody: openAiError,
  unknownPath: () => ({ status: 404, body: { code: 5, error: "url.not_found", message: "没找到对象", status: false } }),
  noCredit: {
    status: 429,
    body: {
      error: {
        message:
          "Your account is suspended due to insufficient balance, please recharge your account or check your plan and billing details",
        type: "exceeded_current_quota_error",
      },
    },
  },
  thinking: { piece: (text) => ({ reasoning_content: text }) },
  rules: [
    refuseFields(
      (name, value) => FIXED[name] !== undefined && value !== FIXED[name],
      (name) => ({
        status: 400,
        body: {
          error: {
            message: `invalid ${name}: only ${FIXED[name]} is allowed for this model`,
            type: "invalid_request_error",
          },
        },
      }),
    ),
    refuseMessages(
      (message) => callsOf(message).length > 0 && typeof message["reasoning_content"] !== "string",
      (index) =>
        refuse(
          400,
          `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${index}`,
        ),
    ),
  ],
  explained: { ...DRAWS_NOTHING, ...FIXED_TEMPERATURE },
};
