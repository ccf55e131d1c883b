// vLLM with Gemma 2 and without a tool-call parser. Gemma's template has no system role.
// template: https://github.com/vllm-project/vllm/pull/2964, https://github.com/suitenumerique/conversations/issues/197,
// https://github.com/google/adk-python/issues/1373
// tools: https://docs.vllm.ai/en/latest/features/tool_calling.html
import {
  alternates,
  CALLS_NOTHING,
  type Dialect,
  DRAWS_NOTHING,
  hasPicture,
  refuseMessages,
  SEES_NOTHING,
} from "../dialect.ts";
import { refuseVllm, vllmError } from "./vllm.ts";

export const vllmGemma: Dialect = {
  title: "vLLM, Gemma",
  address: "http://127.0.0.1:8000/v1",
  chatModel: "google/gemma-2-9b-it",
  hasModelList: true,
  errorBody: vllmError,
  rules: [
    ({ tools }) =>
      tools?.length
        ? refuseVllm('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')
        : undefined,
    refuseMessages(hasPicture, () => refuseVllm("google/gemma-2-9b-it is not a multimodal model")),
    refuseMessages(
      ({ role }) => role === "system",
      () => refuseVllm("System role not supported"),
    ),
    ({ messages }) =>
      alternates(messages)
        ? undefined
        : refuseVllm("Conversation roles must alternate user/assistant/user/assistant/..."),
  ],
  explained: { ...DRAWS_NOTHING, ...SEES_NOTHING, ...CALLS_NOTHING },
};
