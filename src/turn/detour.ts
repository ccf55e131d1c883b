import type { Detour } from "../gateway/client.ts";
import type { GatewayErrorKind } from "../gateway/errors.ts";
import { quoteName } from "../text/quote-name.ts";

/** Says who answered in place of a model, as one line of Markdown. */
export function describeDetour(detour: Detour, model: string): string {
  const other = detour.model === model ? "" : quoteName(detour.model);
  const gateway = detour.isSecondGateway ? "the second gateway" : "";
  return `_Answered by ${[other, gateway].filter(Boolean).join(" of ")}: ${describeReason(detour.because, model)}._`;
}

/** Ends a sentence: why a model did not answer itself. */
export function describeReason(because: GatewayErrorKind, model: string): string {
  if (because === "unreachable") return "the first gateway cannot be reached";
  return `${quoteName(model)} ${because === "rate-limited" ? "is at its limit" : "does not answer at the moment"}`;
}
