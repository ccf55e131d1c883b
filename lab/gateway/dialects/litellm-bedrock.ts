// LiteLLM in front of Bedrock.
// no tools: https://github.com/onyx-dot-app/onyx/issues/7842, https://github.com/vercel/ai/issues/7528
// tool_choice: https://github.com/BerriAI/litellm/blob/main/litellm/llms/bedrock/chat/converse_transformation.py
// empty text: https://github.com/BerriAI/litellm/issues/7169
// arguments: https://github.com/openai/openai-agents-js/pull/712
import { type Dialect, DRAWS_NOTHING, refuseMessages } from "../dialect.ts";
import { STRAY_BRACES } from "../traits.ts";
import { hasEmptyText, lacksTools } from "./anthropic.ts";
import { litellmError, refuseBedrock, refuseLitellm } from "./litellm.ts";

const MODEL = "bedrock-claude-sonnet-4";

export const litellmBedrock: Dialect = {
  title: "LiteLLM, Bedrock",
  address: "http://127.0.0.1:4000/v1",
  chatModel: MODEL,
  hasModelList: true,
  errorBody: litellmError,
  noCredit: {
    status: 400,
    body: {
      error: {
        message: "Budget has been exceeded! Current cost: 10.02, Max budget: 10.0",
        type: "budget_exceeded",
        param: null,
        code: "400",
      },
    },
  },
  ...STRAY_BRACES,
  rules: [
    (request) =>
      lacksTools(request)
        ? refuseBedrock("The toolConfig field must be defined when using toolUse and toolResult content blocks.", MODEL)
        : undefined,
    ({ tool_choice: choice }) =>
      choice === "none"
        ? refuseLitellm(
            "UnsupportedParamsError: Bedrock doesn't support tool_choice=none. To drop it from the call, set `litellm.drop_params = True.",
            MODEL,
          )
        : undefined,
    refuseMessages(hasEmptyText, (index) =>
      refuseBedrock(
        `The text field in the ContentBlock object at messages.${index}.content.0 is blank. Add text to the text field, and try again.`,
        MODEL,
      ),
    ),
  ],
  explained: DRAWS_NOTHING,
};
