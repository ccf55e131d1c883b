import { GatewayError } from "../gateway/errors.ts";
import { QuotaError } from "../quota/quota.ts";
import type { Cause } from "../reply/reply.ts";
import { NotPermittedError } from "./permits.ts";

/** The end of a turn, as it is counted. */
export type Outcome =
  | "complete"
  | "waiting"
  | "length"
  | "filtered"
  | "refused"
  | "interrupted"
  | "stopped"
  | "failed"
  | "shutdown";

/** Why a turn ended that goes on when a person has decided about its calls. No gateway gives such a reason. */
export const WAITS = "waits for a person";

export interface Ending {
  outcome: Outcome;
  /** One line of Markdown to put under the text, or alone where there is none; "" when the answer is complete. */
  note: string;
  /** Asking again may help. */
  retry: boolean;
}

export interface EndingContext {
  model: string;
  /** The name of the person who stopped it; "you" when nobody but them reads that. */
  stoppedBy?: string | undefined;
  /** Unix milliseconds. */
  now: number;
}

const ASK_AGAIN = "Press Retry to ask again.";
const COMPLETE: Ending = { outcome: "complete", note: "", retry: false };
/** Codes of gateways for a context that is too long for the model. */
const TOO_LONG_CODE = /context_(length|window)|too_long|too_large|string_above_max/;
const FILTER_CODE = /content_(filter|policy)|safety/;
const UNSUPPORTED_CODE = /unsupported_(feature|content|media|parameter)|(image|vision|tool)s?_not_supported/;
const UNKNOWN_MODEL_CODE = /model_not_(found|available|supported)|(unknown|invalid)_model|no_such_model/;
/** Longer countdowns are harder to follow than the clock. */
const LONGEST_COUNTDOWN_MS = 90_000;
/** Nobody waits for longer than this, and a number large enough is no date any more. */
const LONGEST_WAIT_MS = 30 * 86_400_000;

/**
 * Says in plain words how a turn ended, and what to do. The error may be a `CutReason`, or `filtered` for a text that the
 * platform's own filter does not take. Never quotes an error, a body, an address or a key.
 */
export function describeEnding(cause: Cause, context: EndingContext): Ending {
  if ("finish" in cause) return describeFinish(cause.finish);
  const { error } = cause;
  if (error instanceof NotPermittedError) return final("failed", error.message);
  if (error instanceof GatewayError) return describeGatewayError(error, context);
  if (error instanceof QuotaError) return { outcome: "refused", note: `_${error.message}_`, retry: true };
  if (error === "stopped") return end("stopped", describeStop(context.stoppedBy));
  if (error === "given-up") {
    return end("failed", `Given up: I tried this again and again without coming to an answer. ${ASK_AGAIN}`);
  }
  if (error === "shutdown")
    return end("shutdown", `Interrupted: the bot was shut down while it answered. ${ASK_AGAIN}`);
  if (error === "refused")
    return end("interrupted", `Interrupted: the channel takes no more of this answer. ${ASK_AGAIN}`);
  if (error === "filtered") {
    return end(
      "filtered",
      "Withheld: the filter of this place does not let this answer through. Put the question in other words, or ask whoever manages the filter.",
    );
  }
  if (isDomException(error, "TimeoutError")) {
    return end("interrupted", `Interrupted: the answer took longer than is allowed. ${ASK_AGAIN}`);
  }
  if (isDomException(error, "AbortError"))
    return end("interrupted", `Interrupted: the answer was cut short. ${ASK_AGAIN}`);
  return end("failed", `Failed: something went wrong inside the bot, and its log says what. ${ASK_AGAIN}`);
}

function describeStop(by: string | undefined): string {
  if (by === "you") return "You stopped this answer.";
  return by === undefined ? "Stopped: this answer was ended on request." : `Stopped: ${by} ended this answer.`;
}

/** Gateways have more words for a normal end than can be listed, so an unknown one counts as that. */
function describeFinish(reason: string): Ending {
  switch (reason.toLowerCase()) {
    case "length":
    case "max_tokens":
      return end(
        "length",
        "Cut off: the answer reached the greatest length the model may write. Press Continue for the rest.",
      );
    case "content_filter":
    case "safety":
      return filtered();
    case "tool_limit":
      return end("interrupted", `Interrupted: the model went on using tools without coming to an answer. ${ASK_AGAIN}`);
    case WAITS:
      return { outcome: "waiting", note: "", retry: false };
    case "error":
      return end("interrupted", `Interrupted: the model's answer broke off. ${ASK_AGAIN}`);
    default:
      return COMPLETE;
  }
}

function describeGatewayError(error: GatewayError, { model, now }: EndingContext): Ending {
  switch (error.kind) {
    case "rate-limited":
      return end(
        "failed",
        `Rate-limited: the gateway takes no more requests for the model ${quote(model)} at the moment. Press Retry ${describeWait(error.retryAfterMs, now)}.`,
      );
    case "overloaded":
      return end(
        "failed",
        `Overloaded: the gateway cannot answer at the moment. Press Retry ${describeWait(error.retryAfterMs, now)}.`,
      );
    case "unreachable":
      return end(
        "failed",
        "Unreachable: there is no connection to the gateway. Press Retry in a minute; if that does not help, the operator should check the network and `GATEWAY_BASE_URL`.",
      );
    case "stalled":
      return end("interrupted", `Interrupted: the model stopped sending. ${ASK_AGAIN}`);
    case "interrupted":
      return FILTER_CODE.test(codeOf(error))
        ? filtered()
        : end("interrupted", `Interrupted: the model's answer broke off. ${ASK_AGAIN}`);
    case "malformed":
      return end("interrupted", `Interrupted: what the gateway sent is not an answer. ${ASK_AGAIN}`);
    case "unauthorized":
      return describeUnauthorized(error, model);
    case "rejected":
      break;
  }
  return describeRejected(error, model);
}

function describeUnauthorized(error: GatewayError, model: string): Ending {
  if (error.status === 403 || UNKNOWN_MODEL_CODE.test(codeOf(error))) {
    return final(
      "failed",
      `Refused: the gateway does not let this bot use the model ${quote(model)}. The operator should check the permissions of the key.`,
    );
  }
  return final(
    "failed",
    "Refused: the gateway does not accept this bot's key. The operator should check `GATEWAY_API_KEY`.",
  );
}

function describeRejected(error: GatewayError, model: string): Ending {
  const code = codeOf(error);
  if (FILTER_CODE.test(code)) return filtered();
  if (error.status === 402) {
    return final(
      "failed",
      "Refused: this bot's account at the gateway has no credit left. Its operator should look after that.",
    );
  }
  if (error.status === 413 || TOO_LONG_CODE.test(code)) {
    return final(
      "failed",
      `Too long: this conversation with its files is more than the model ${quote(model)} can read. Send less, or begin a new conversation.`,
    );
  }
  if (error.status === 404 || UNKNOWN_MODEL_CODE.test(code)) {
    return final(
      "failed",
      `Refused: the gateway has no model ${quote(model)} for this. The operator should check the name of the model, and \`GATEWAY_BASE_URL\`.`,
    );
  }
  if (UNSUPPORTED_CODE.test(code)) {
    return final(
      "failed",
      `Refused: the model ${quote(model)} cannot take the pictures or the tools of this conversation. The operator should choose another model.`,
    );
  }
  return final(
    "failed",
    "Refused: the gateway does not accept this request, and the bot's log says why at `LOG_LEVEL=debug`.",
  );
}

function filtered(): Ending {
  return end(
    "filtered",
    "Withheld: a content filter ended this answer. Put the question in other words, or press Retry.",
  );
}

/** An ending after which the same question may well be answered. */
function end(outcome: Outcome, sentence: string): Ending {
  return { outcome, note: `_${sentence}_`, retry: true };
}

function final(outcome: Outcome, sentence: string): Ending {
  return { outcome, note: `_${sentence}_`, retry: false };
}

function describeWait(waitMs: number | undefined, now: number): string {
  if (waitMs === undefined) return "in a minute";
  if (!(waitMs <= LONGEST_WAIT_MS)) return "another day";
  if (waitMs <= LONGEST_COUNTDOWN_MS) {
    const seconds = Math.max(1, Math.ceil(waitMs / 1_000));
    return seconds === 1 ? "in 1 second" : `in ${seconds} seconds`;
  }
  // Rounded up to the minute: at the time named, the wait must be over.
  const until = new Date(Math.ceil((now + waitMs) / 60_000) * 60_000).toISOString();
  const [day = "", time = ""] = until.split("T");
  const clock = `at about ${time.slice(0, 5)} UTC`;
  return day === new Date(now).toISOString().slice(0, 10) ? clock : `on ${day} ${clock}`;
}

function codeOf({ type = "", code = "" }: GatewayError): string {
  return `${type} ${code}`.toLowerCase();
}

function quote(model: string): string {
  return `\`${model.replaceAll("`", "'")}\``;
}

function isDomException(error: unknown, name: string): boolean {
  return error instanceof DOMException && error.name === name;
}
