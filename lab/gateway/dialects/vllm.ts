// Helpers for the vLLM dialects. vLLM checks keys if it was started with `--api-key`.
import type { ErrorBody, Refusal } from "../dialect.ts";

export const vllmError: ErrorBody = (status, message) => ({
  error: { message, type: status === 404 ? "NotFoundError" : "BadRequestError", param: null, code: status },
});

export function refuseVllm(message: string): Refusal {
  return { status: 400, body: vllmError(400, message, "") };
}
