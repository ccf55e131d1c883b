// OpenRouter with an Anthropic model.
// https://openrouter.ai/docs/api-reference/streaming, https://openrouter.ai/docs/api/reference/errors-and-debugging,
// https://openrouter.ai/docs/guides/best-practices/reasoning-tokens, https://openrouter.ai/docs/features/multimodal/image-generation
// fragments of reasoning_details: https://github.com/langchain-ai/langchain/issues/36400
import { ANNOTATIONS } from "../citations.ts";
import { type Dialect, type ErrorBody, isRecord, sign } from "../dialect.ts";
import { isSigned, lastCaller, toMissingThought } from "./anthropic.ts";

const FORMAT = "anthropic-claude-v1";

const openRouterError: ErrorBody = (status, message) => ({ error: { message, code: status } });

export const openrouter: Dialect = {
  title: "OpenRouter",
  address: "https://openrouter.ai/api/v1",
  chatModel: "anthropic/claude-sonnet-4.5",
  imageModel: "google/gemini-2.5-flash-image",
  draws: { by: "chat" },
  hasModelList: true,
  errorBody: openRouterError,
  noCredit: {
    status: 402,
    body: openRouterError(402, "Insufficient credits. Add more using https://openrouter.ai/settings/credits", ""),
  },
  thinking: {
    piece: (text) => ({
      content: "",
      reasoning: text,
      reasoning_details: [{ type: "reasoning.text", text, format: FORMAT, index: 0 }],
    }),
    end: (whole) => ({
      content: "",
      reasoning_details: [
        { type: "reasoning.text", signature: sign(whole), format: FORMAT, index: 0 },
        { type: "reasoning.encrypted", data: sign(`${whole} `), format: FORMAT, index: 1 },
      ],
    }),
  },
  usageFields: (usage) => ({ usage: { ...usage, cost: 0.000_42 } }),
  breaksOff: [
    {
      type: "chunk",
      delta: { content: "" },
      finish: "error",
      fields: { provider: "Anthropic", error: { code: 502, message: "Provider disconnected unexpectedly" } },
    },
  ],
  toAnswer: ANNOTATIONS.toAnswer,
  webSearch: "cites",
  toStream: (stream, answer) => [
    { type: "raw", text: ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" },
    ...(ANNOTATIONS.toStream?.(stream, answer) ?? stream),
  ],
  rules: [
    ({ messages }) => {
      const caller = lastCaller(messages);
      if (caller === undefined) return undefined;
      const details: unknown = caller["reasoning_details"];
      const [text, encrypted] = Array.isArray(details) ? details : [];
      const isWhole =
        isSigned(text, "text") &&
        isRecord(encrypted) &&
        isRecord(text) &&
        encrypted["data"] === sign(`${String(text["text"])} `);
      if (isWhole) return undefined;
      const message = toMissingThought(messages.indexOf(caller));
      const raw = JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } });
      const metadata = { raw, provider_name: "Anthropic" };
      return { status: 400, body: { error: { message: "Provider returned error", code: 400, metadata } } };
    },
  ],
};
