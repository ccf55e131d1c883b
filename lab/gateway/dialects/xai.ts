// xAI's Grok.
// https://docs.x.ai/developers/rest-api-reference/inference/chat, https://docs.x.ai/developers/model-capabilities/images/generation
// penalties: https://github.com/yym68686/uni-api/issues/105, https://github.com/open-webui/open-webui/issues/21266
// stop: https://github.com/langchain-ai/langchain/pull/38335
import { type Dialect, type ErrorBody, refuseFields } from "../dialect.ts";

const REFUSED: Readonly<Record<string, string>> = {
  presence_penalty: "presencePenalty",
  frequency_penalty: "frequencyPenalty",
  stop: "stop",
};

const xaiError: ErrorBody = (_status, message) => ({ code: "Client specified an invalid argument", error: message });

export const xai: Dialect = {
  title: "xAI",
  address: "https://api.x.ai/v1",
  chatModel: "grok-4-1-fast-reasoning",
  imageModel: "grok-imagine-image",
  draws: { by: "images", linksByDefault: true },
  hasModelList: true,
  errorBody: xaiError,
  noCredit: {
    status: 429,
    body: {
      code: "Some resource has been exhausted",
      error:
        "Your team has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit.",
    },
  },
  thinking: { piece: (text) => ({ reasoning_content: text }) },
  usageFields: (usage) => ({ usage }),
  rules: [
    refuseFields(
      (name) => REFUSED[name] !== undefined,
      (name) => ({
        status: 400,
        body: xaiError(400, `Argument not supported on this model: ${REFUSED[name]}`, ""),
      }),
    ),
  ],
};
