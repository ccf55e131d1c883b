// Azure OpenAI, through its v1 API.
// https://learn.microsoft.com/azure/ai-services/openai/api-version-lifecycle
// first chunk: https://github.com/AbanteAI/archive-old-cli-mentat/issues/429
// chunks without a delta: https://github.com/langchain-ai/langchain/issues/18977, https://github.com/microsoft/autogen/issues/6465
import { type Dialect, type Sent } from "../dialect.ts";
import { commonRules, refuseDrawing } from "./openai.ts";

const SAFE = Object.fromEntries(
  ["hate", "self_harm", "sexual", "violence"].map((kind) => [kind, { filtered: false, severity: "safe" }]),
);
const NAMELESS = { id: "", object: "", created: 0, model: "" };
const PROMPT: Sent = {
  type: "chunk",
  delta: {},
  fields: { ...NAMELESS, choices: [], prompt_filter_results: [{ prompt_index: 0, content_filter_results: SAFE }] },
};
const FILTERED_LATE: Sent = {
  type: "chunk",
  delta: {},
  fields: {
    ...NAMELESS,
    choices: [
      {
        index: 0,
        finish_reason: null,
        content_filter_results: SAFE,
        content_filter_offsets: { check_offset: 0, start_offset: 0, end_offset: 1 },
      },
    ],
  },
};

export const azure: Dialect = {
  title: "Azure OpenAI",
  address: "https://RESOURCE.openai.azure.com/openai/v1",
  chatModel: "gpt-4.1",
  imageModel: "gpt-image-1",
  draws: { by: "images", refuse: refuseDrawing },
  hasModelList: true,
  errorBody: (status, message, code) => ({ error: { code: status === 401 ? "401" : code, message } }),
  unknownPath: () => ({ status: 404, body: { error: { code: "404", message: "Resource not found" } } }),
  rules: commonRules,
  toStream: (stream) => [
    PROMPT,
    ...stream.flatMap((sent): Sent[] => {
      if (sent.type !== "chunk") return [sent];
      const checked: Sent = { ...sent, choice: { content_filter_results: SAFE } };
      return sent.finish === undefined ? [checked] : [checked, FILTERED_LATE];
    }),
  ],
};
