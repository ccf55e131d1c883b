import type { Detour } from "../gateway/client.ts";
import type { GatewayErrorKind } from "../gateway/errors.ts";
import { quoteName } from "../text/quote-name.ts";

/** Says who answered in place of a model, as one line of Markdown. */
export function describeDetour(detour: Detour, model: string): string {
  return `_Answered by ${describeOther(detour, model)}, because ${describeReason(detour.because, model)}._`;
}

/** Names the model that answered, unless it is `model`, and the second AI service. */
export function describeOther({ model: other, isSecondGateway }: Detour, model?: string): string {
  const service = isSecondGateway ? "the second AI service" : "";
  return [other === model ? "" : quoteName(other), service].filter(Boolean).join(" of ");
}

/** Ends a sentence: why a model did not answer itself. */
export function describeReason(because: GatewayErrorKind, model: string): string {
  if (because === "unreachable") return "I couldn't reach the first one";
  if (because === "rate-limited") return `${quoteName(model)} is at its rate limit`;
  return `${quoteName(model)} ${because === "rejected" ? "refused the request" : "didn't answer"}`;
}

/** Says that a person got another model than the one the channel chose. */
export function describeOtherModel(wanted: string, model: string): string {
  return `_${quoteName(model)} answered: the model of this channel, ${quoteName(wanted)}, is not for you._`;
}
