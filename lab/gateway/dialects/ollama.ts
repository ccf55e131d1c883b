// Ollama with a model that has image input and no tools.
// https://github.com/ollama/ollama/blob/main/docs/openai.md
// tools: https://github.com/louisho5/picobot/issues/6, https://github.com/FoundationAgents/OpenManus/issues/220
import {
  CALLS_NOTHING,
  type Dialect,
  DRAWS_NOTHING,
  hasPicture,
  openAiError,
  refuse,
  refuseMessages,
} from "../dialect.ts";

export const ollama: Dialect = {
  title: "Ollama",
  address: "http://127.0.0.1:11434/v1",
  chatModel: "gemma3:4b",
  hasModelList: true,
  errorBody: openAiError,
  unknownPath: () => ({ status: 404, body: "404 page not found" }),
  rules: [
    ({ tools }) =>
      tools?.length
        ? refuse(400, "registry.ollama.ai/library/gemma3:4b does not support tools", { type: "api_error" })
        : undefined,
    // Ollama does not fetch image links.
    refuseMessages(
      (message) => hasPicture(message) && !JSON.stringify(message.content).includes('"data:'),
      () => refuse(400, "invalid image input", { type: "invalid_request_error" }),
    ),
  ],
  explained: { ...DRAWS_NOTHING, ...CALLS_NOTHING },
};
