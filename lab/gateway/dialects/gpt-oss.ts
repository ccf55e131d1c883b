// gpt-oss on vLLM. It sends its reasoning in `reasoning`.
// https://docs.vllm.ai/en/latest/features/reasoning_outputs.html
// harmony: https://github.com/vllm-project/vllm/issues/51977, https://github.com/openai/harmony/issues/38
import { type Dialect, DRAWS_NOTHING, hasPicture, refuseMessages, SEES_NOTHING } from "../dialect.ts";
import { refuseVllm, vllmError } from "./vllm.ts";

export const gptOss: Dialect = {
  title: "gpt-oss",
  address: "http://127.0.0.1:8000/v1",
  chatModel: "openai/gpt-oss-20b",
  hasModelList: true,
  errorBody: vllmError,
  thinking: { piece: (text) => ({ reasoning: text }) },
  breaksOff: [
    {
      type: "raw",
      text: `data: ${JSON.stringify({
        error: {
          message: 'unexpected tokens remaining in message header: Some("to=functions.get_weather")',
          type: "InternalServerError",
          param: null,
          code: 500,
        },
      })}\n\ndata: [DONE]\n\n`,
    },
  ],
  rules: [refuseMessages(hasPicture, () => refuseVllm("openai/gpt-oss-20b is not a multimodal model"))],
  explained: { ...DRAWS_NOTHING, ...SEES_NOTHING },
};
