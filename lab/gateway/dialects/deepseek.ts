// DeepSeek's thinking mode.
// https://api-docs.deepseek.com/guides/thinking_mode.md, https://api-docs.deepseek.com/quick_start/error_codes
// reasoning_content: https://github.com/JohnnyZ93/oai-compatible-copilot/issues/215, https://github.com/anomalyco/opencode/issues/24722
// images: https://github.com/1jehuang/jcode/issues/310
import {
  callsOf,
  type Dialect,
  DRAWS_NOTHING,
  hasPicture,
  openAiError,
  refuse,
  refuseMessages,
  SEES_NOTHING,
} from "../dialect.ts";

export const deepseek: Dialect = {
  title: "DeepSeek",
  address: "https://api.deepseek.com/v1",
  chatModel: "deepseek-v4-pro",
  hasModelList: true,
  errorBody: openAiError,
  noCredit: refuse(402, "Insufficient Balance", { type: "unknown_error", code: "invalid_request_error" }),
  usageFields: (usage) => ({ usage }),
  thinking: { piece: (text) => ({ content: null, reasoning_content: text }) },
  breaksOff: [
    { type: "chunk", delta: { content: "" }, finish: "insufficient_system_resource" },
    { type: "raw", text: "data: [DONE]\n\n" },
  ],
  toStream: (stream) => [{ type: "raw", text: ": keep-alive\n\n" }, ...stream],
  rules: [
    refuseMessages(hasPicture, (index) =>
      refuse(
        400,
        `Failed to deserialize the JSON body into the target type: messages[${index}]: unknown variant \`image_url\`, expected \`text\` at line 1 column 1`,
        { code: "invalid_request_error" },
      ),
    ),
    // Refused for earlier turns too.
    refuseMessages(
      (message) => callsOf(message).length > 0 && typeof message["reasoning_content"] !== "string",
      () =>
        refuse(400, "The `reasoning_content` in the thinking mode must be passed back to the API.", {
          code: "invalid_request_error",
        }),
    ),
  ],
  explained: { ...DRAWS_NOTHING, ...SEES_NOTHING },
};
