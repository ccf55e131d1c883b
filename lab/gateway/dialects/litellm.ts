import type { ErrorBody, Refusal } from "../dialect.ts";

export const litellmError: ErrorBody = (status, message, code) => ({
  error: { message, type: status === 401 ? "auth_error" : code, param: "None", code: String(status) },
});

/** A 400 from LiteLLM or from the provider behind it. */
export function refuseLitellm(words: string, model: string): Refusal {
  const message = `litellm.${words}. Received Model Group=${model}\nAvailable Model Group Fallbacks=None`;
  return { status: 400, body: { error: { message, type: null, param: null, code: "400" } } };
}

/** An Anthropic error wrapped in LiteLLM's error. */
export function refuseAnthropic(message: string, model: string): Refusal {
  const error = JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } });
  return refuseLitellm(`BadRequestError: AnthropicException - ${error}`, model);
}

export function refuseBedrock(message: string, model: string): Refusal {
  return refuseLitellm(`BadRequestError: BedrockException - ${JSON.stringify({ message })}`, model);
}
