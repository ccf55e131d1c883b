// vLLM with a Mistral model, its original chat template and a tool-call parser.
// template: https://github.com/vllm-project/vllm/issues/6862, full text: https://github.com/nomic-ai/gpt4all/issues/3273
import {
  alternates,
  callsOf,
  type Dialect,
  DRAWS_NOTHING,
  hasPicture,
  isToolTalk,
  refuseMessages,
  SEES_NOTHING,
} from "../dialect.ts";
import { toMistralId } from "./mistral.ts";
import { refuseVllm, vllmError } from "./vllm.ts";

export const vllmMistral: Dialect = {
  title: "vLLM, Mistral",
  address: "http://127.0.0.1:8000/v1",
  chatModel: "mistralai/Mistral-7B-Instruct-v0.3",
  hasModelList: true,
  errorBody: vllmError,
  toAnswer: (answer) => ({ ...answer, calls: answer.calls.map((call) => ({ ...call, id: toMistralId(call.id) })) }),
  rules: [
    refuseMessages(hasPicture, () => refuseVllm("mistralai/Mistral-7B-Instruct-v0.3 is not a multimodal model")),
    ({ messages }) =>
      alternates(messages, isToolTalk)
        ? undefined
        : refuseVllm(
            "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
          ),
    refuseMessages(
      (message) => callsOf(message).some(({ id }) => id.length !== 9),
      () => refuseVllm("Tool call IDs should be alphanumeric strings with length 9!"),
    ),
  ],
  explained: { ...DRAWS_NOTHING, ...SEES_NOTHING },
};
