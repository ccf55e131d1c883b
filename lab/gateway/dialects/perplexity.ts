// Perplexity's Sonar. It has no tools and no model list. https://docs.perplexity.ai/api-reference/chat-completions-post
// roles: https://github.com/perplexityai/api-discussion/issues/265, https://github.com/iamsrikanthnani/pluely/issues/71
// formats: https://github.com/567-labs/instructor/issues/1005 list:
// https://github.com/Mintplex-Labs/anything-llm/issues/1990, https://github.com/posit-dev/chatlas/pull/155 No report
// quotes the refusal of `name` in full, so the refusal here looks like that of a format.
import { NUMBERS } from "../citations.ts";
import {
  alternates,
  CALLS_NOTHING,
  type Dialect,
  DRAWS_NOTHING,
  type ErrorBody,
  isRecord,
  type Refusal,
  refuseMessages,
} from "../dialect.ts";

const perplexityError: ErrorBody = (status, message, code) => ({ error: { message, type: code, code: status } });

function refuse400(message: string, type: string): Refusal {
  return { status: 400, body: perplexityError(400, message, type) };
}

export const perplexity: Dialect = {
  title: "Perplexity",
  address: "https://api.perplexity.ai",
  chatModel: "sonar",
  hasModelList: false,
  errorBody: perplexityError,
  noCredit: {
    status: 401,
    body: perplexityError(
      401,
      "You exceeded your current quota, please check your plan and billing details.",
      "insufficient_quota",
    ),
  },
  usageFields: (usage) => ({ usage }),
  toAnswer: NUMBERS.toAnswer,
  webSearch: "cites",
  // Each chunk contains the delta, the whole text before it, and the sources.
  toStream(stream, answer) {
    let content = "";
    const cited = NUMBERS.toStream?.(stream, answer) ?? stream;
    return cited.map((sent) => {
      if (sent.type !== "chunk") return sent;
      if (typeof sent.delta["content"] === "string") content += sent.delta["content"];
      return { ...sent, choice: { message: { role: "assistant", content } } };
    });
  },
  rules: [
    refuseMessages(
      ({ name }) => name !== undefined && name !== null,
      (index) =>
        refuse400(`["At body -> messages -> ${index} -> name: Extra inputs are not permitted"]`, "bad_request"),
    ),
    ({ tools }) =>
      tools?.length
        ? refuse400("Tool calling is not supported for this model.", "tool_calling_not_supported")
        : undefined,
    ({ response_format: format }) => {
      const type = isRecord(format) ? format["type"] : undefined;
      if (type === undefined || type === "text" || type === "json_schema" || type === "regex") return undefined;
      const message = `["At body -> response_format -> ResponseFormatText -> type: Input should be 'text'", "At body -> response_format -> ResponseFormatJSONSchema -> type: Input should be 'json_schema'", "At body -> response_format -> ResponseFormatRegex -> type: Input should be 'regex'"]`;
      return refuse400(message, "bad_request");
    },
    ({ messages }) =>
      alternates(messages)
        ? undefined
        : refuse400(
            "After the (optional) system message(s), user or tool message(s) should alternate with assistant message(s).",
            "invalid_message",
          ),
  ],
  explained: {
    ...DRAWS_NOTHING,
    ...CALLS_NOTHING,
    "JSON format": { because: "the vendor requires a schema", says: /JSON|format/i },
    "model list": { because: "the vendor has no model list", says: /list/i },
  },
};
