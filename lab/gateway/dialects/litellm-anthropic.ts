// LiteLLM in front of Anthropic, with thinking enabled.
// https://docs.litellm.ai/docs/reasoning_content
// thinking_blocks: https://github.com/BerriAI/litellm/issues/15601, https://github.com/openai/openai-agents-python/issues/1704
// empty text: https://github.com/aliasrobotics/cai/issues/182, https://github.com/anthropics/anthropic-sdk-python/issues/461
// no tools: https://github.com/anomalyco/opencode/issues/2915, https://github.com/BerriAI/litellm/issues/24712
// temperature: https://github.com/valentinfrlch/ha-llmvision/issues/690
import { type Dialect, DRAWS_NOTHING, FIXED_TEMPERATURE, refuseFields, refuseMessages, sign } from "../dialect.ts";
import { hasEmptyText, isSigned, lacksTools, lastCaller, toMissingThought } from "./anthropic.ts";
import { litellmError, refuseAnthropic, refuseLitellm } from "./litellm.ts";

const MODEL = "claude-sonnet-4-5";

export const litellmAnthropic: Dialect = {
  title: "LiteLLM, Anthropic",
  address: "http://127.0.0.1:4000/v1",
  chatModel: MODEL,
  hasModelList: true,
  errorBody: litellmError,
  noCredit: refuseAnthropic(
    "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
    MODEL,
  ),
  thinking: {
    piece: (text) => ({
      content: "",
      reasoning_content: text,
      thinking_blocks: [{ type: "thinking", thinking: text, signature: null }],
    }),
    end: (whole) => ({
      content: "",
      reasoning_content: "",
      thinking_blocks: [{ type: "thinking", thinking: "", signature: sign(whole) }],
    }),
  },
  rules: [
    (request) =>
      lacksTools(request)
        ? refuseLitellm(
            "UnsupportedParamsError: Anthropic doesn't support tool calling without `tools=` param specified. Pass `tools=` param OR set `litellm.modify_params = True` // `litellm_settings::modify_params: True` to add dummy tool to the request.",
            MODEL,
          )
        : undefined,
    refuseMessages(hasEmptyText, () => refuseAnthropic("messages: text content blocks must be non-empty", MODEL)),
    refuseFields(
      (name, value) => name === "temperature" && value !== 1,
      () =>
        refuseAnthropic(
          "`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking",
          MODEL,
        ),
    ),
    ({ messages }) => {
      const caller = lastCaller(messages);
      if (caller === undefined) return undefined;
      const blocks: unknown = caller["thinking_blocks"];
      const index = messages.indexOf(caller);
      if (!Array.isArray(blocks) || blocks.length === 0) return refuseAnthropic(toMissingThought(index), MODEL);
      if (blocks.every((block) => isSigned(block, "thinking"))) return undefined;
      return refuseAnthropic(`messages.${index}.content.0: Invalid \`signature\` in \`thinking\` block`, MODEL);
    },
  ],
  explained: { ...DRAWS_NOTHING, ...FIXED_TEMPERATURE },
};
