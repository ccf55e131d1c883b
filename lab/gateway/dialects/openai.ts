// OpenAI's reasoning models.
// https://platform.openai.com/docs/api-reference/chat/create
// temperature: https://github.com/diffbot/code-gpt-docs/issues/445, https://github.com/chatboxai/chatbox/issues/2564
// max_tokens: https://github.com/griptape-ai/ComfyUI-Griptape/issues/312, https://github.com/fish2018/YPrompt/issues/26
// name: https://github.com/jekalmin/extended_openai_conversation/issues/251
// images: https://platform.openai.com/docs/api-reference/images/createEdit,
// https://mail-archive.com/issues@camel.apache.org/msg130272.html
import { ANNOTATIONS } from "../citations.ts";
import {
  type Dialect,
  FIXED_TEMPERATURE,
  openAiError,
  type Refusal,
  type Rule,
  refuse,
  refuseField,
  refuseFields,
  refuseMessages,
} from "../dialect.ts";

/** Reasoning models accept only these values. */
const FIXED: Readonly<Record<string, number>> = { temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0 };

export const commonRules: readonly Rule[] = [
  refuseMessages(
    ({ name }) => typeof name === "string" && !/^[^\s<|\\/>]+$/.test(name),
    (index) => {
      const param = `messages[${index}].name`;
      const rule = "string does not match pattern. Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'.";
      return refuse(400, `Invalid '${param}': ${rule}`, { param, code: "invalid_value" });
    },
  ),
  ({ response_format: format, messages }) => {
    const isJson = JSON.stringify(format ?? null).includes('"json_object"');
    if (!isJson || /json/i.test(JSON.stringify(messages))) return undefined;
    const message =
      "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.";
    return refuse(400, message, { param: "messages" });
  },
];

/** gpt-image-1 always returns base64 and refuses `response_format`. */
export function refuseDrawing(
  fields: Readonly<Record<string, unknown>>,
  types: readonly string[],
): Refusal | undefined {
  const type = types.find((one) => !["image/jpeg", "image/png", "image/webp"].includes(one));
  if (type !== undefined) {
    const message = `Invalid file 'image': unsupported mimetype ('${type}'). Supported file formats are 'image/jpeg', 'image/png', and 'image/webp'.`;
    return refuse(400, message, { param: "image", code: "unsupported_file_mimetype" });
  }
  if (fields["response_format"] !== undefined) {
    const param = "response_format";
    return refuse(400, `Unknown parameter: '${param}'.`, { param, code: "unknown_parameter" });
  }
  const { size = "auto" } = fields;
  if (["1024x1024", "1536x1024", "1024x1536", "auto"].includes(String(size))) return undefined;
  const message = `Invalid value: '${String(size)}'. Supported values are: '1024x1024', '1024x1536', '1536x1024', and 'auto'.`;
  return refuse(400, message, { param: "size", code: "invalid_value" });
}

export const openai: Dialect = {
  ...ANNOTATIONS,
  webSearch: "cites",
  title: "OpenAI",
  address: "https://api.openai.com/v1",
  chatModel: "gpt-5-mini",
  imageModel: "gpt-image-1",
  draws: { by: "images", refuse: refuseDrawing },
  hasModelList: true,
  errorBody: openAiError,
  unknownPath: (path) => refuse(404, `Invalid URL (${path})`),
  noCredit: refuse(
    429,
    "You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
    { type: "insufficient_quota", code: "insufficient_quota" },
  ),
  rules: [
    ...commonRules,
    refuseField(
      "max_tokens",
      refuse(
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        { param: "max_tokens", code: "unsupported_parameter" },
      ),
    ),
    refuseFields(
      (name, value) => FIXED[name] !== undefined && value !== FIXED[name],
      (param) =>
        refuse(
          400,
          `Unsupported value: '${param}' does not support this value with this model. Only the default (${FIXED[param]}) value is supported.`,
          { param, code: "unsupported_value" },
        ),
    ),
    refuseField(
      "stop",
      refuse(400, "Unsupported parameter: 'stop' is not supported with this model.", {
        param: "stop",
        code: "unsupported_parameter",
      }),
    ),
  ],
  explained: FIXED_TEMPERATURE,
};
