// Helpers for Gemini's OpenAI-compatible API and Vertex AI.
import {
  type Call,
  callsOf,
  type ErrorBody,
  type Fields,
  isRecord,
  type Refusal,
  type Rule,
  sign,
  turnOf,
} from "../dialect.ts";

const NAMES: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
};

/** Google wraps errors in a list. */
export const googleError: ErrorBody = (status, message) => [
  { error: { code: status, message, status: NAMES[status] ?? "UNKNOWN" } },
];

export function googlePage(): Refusal {
  const page =
    "<!DOCTYPE html><html lang=en><title>Error 404 (Not Found)!!1</title><p>The requested URL was not found on this server.</html>";
  return { status: 404, body: page };
}

export function refuseGoogle(status: number, message: string, details: Fields[] = []): Refusal {
  return {
    status,
    body: [{ error: { code: status, message, status: NAMES[status], ...(details.length > 0 && { details }) } }],
  };
}

/**
 * Returns a function that signs the first of several parallel calls, in the field `owner`. Other calls get no
 * signature.
 */
export function signFirstCall(owner: string): (call: Call, index: number) => Fields {
  return ({ id }, index) => (index === 0 ? { extra_content: { [owner]: { thought_signature: sign(id) } } } : {});
}

/** Refuses a request if the first tool call of a message in the current turn lacks its signature or has a wrong one. */
export function requireSignatures(owner: string, toMessage: (tool: string, index: number) => string): Rule {
  return ({ messages }) => {
    const turn = turnOf(messages);
    for (const message of turn) {
      const [first] = callsOf(message);
      if (first === undefined) continue;
      const extra = isRecord(first["extra_content"]) ? first["extra_content"][owner] : undefined;
      const signature = isRecord(extra) ? extra["thought_signature"] : undefined;
      const index = messages.indexOf(message);
      if (signature === undefined) return refuseGoogle(400, toMessage(first.function.name, index + 1));
      if (signature !== sign(first.id)) return refuseGoogle(400, "Thought signature is not valid.");
    }
    return undefined;
  };
}
