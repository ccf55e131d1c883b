import { GatewayError, type GatewayErrorReason, PASSING } from "../gateway/errors.ts";
import { QuotaError } from "../quota/quota.ts";
import type { Cause } from "../reply/reply.ts";
import { type Finish, readFinish } from "./finish.ts";
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
const FILTERED = end("filtered", "A content filter stopped this answer. Ask in other words, or press Retry.");
const BROKE_OFF = end("interrupted", `The answer broke off before it was finished. ${ASK_AGAIN}`);
const FINISHED: Readonly<Record<Finish, Ending>> = {
  whole: { outcome: "complete", note: "", retry: false },
  length: end("length", "The answer hit the length limit. Press Continue for the rest."),
  filtered: FILTERED,
  broken: BROKE_OFF,
};
/** Statuses by which a service says that it has too much to do; other failures are its own. */
const BUSY_STATUSES: ReadonlySet<number | undefined> = new Set([429, 503, 529]);
/** Longer countdowns are harder to follow than the clock. */
const LONGEST_COUNTDOWN_MS = 90_000;
/** Nobody waits for longer than this, and a number large enough is no date any more. */
const LONGEST_WAIT_MS = 30 * 86_400_000;

/**
 * Says in plain words how a turn ended, and what to do. The error may be a `CutReason`, or `filtered` for a text that the
 * platform's own filter does not accept. Never quotes an error, a body, an address or a key.
 */
export function describeEnding(cause: Cause, context: EndingContext): Ending {
  if ("finish" in cause) return describeFinish(cause.finish);
  const { error } = cause;
  if (error instanceof NotPermittedError) return final("failed", error.message);
  if (error instanceof GatewayError) return describeGatewayError(error, context);
  if (error instanceof QuotaError) return { outcome: "refused", note: `_${error.message}_`, retry: true };
  if (error === "stopped") return end("stopped", describeStop(context.stoppedBy));
  if (error === "given-up") return end("failed", `I tried several times and couldn't finish this answer. ${ASK_AGAIN}`);
  if (error === "shutdown") return end("shutdown", `The bot was shut down before it finished. ${ASK_AGAIN}`);
  if (error === "refused") return end("interrupted", `This channel accepts no more of the answer. ${ASK_AGAIN}`);
  if (error === "filtered") {
    return end(
      "filtered",
      "A filter of this place blocked the answer. Ask in other words, or talk to whoever manages the filter.",
    );
  }
  if (isDomException(error, "TimeoutError")) {
    return end("interrupted", `The answer took longer than is allowed. ${ASK_AGAIN}`);
  }
  if (isDomException(error, "AbortError")) return end("interrupted", `The answer was cut short. ${ASK_AGAIN}`);
  return end("failed", `Something went wrong inside the bot. Its log says what. ${ASK_AGAIN}`);
}

function describeStop(by: string | undefined): string {
  if (by === "you") return "You stopped this answer.";
  return by === undefined ? "This answer was stopped on request." : `${by} stopped this answer.`;
}

function describeFinish(reason: string): Ending {
  if (reason === WAITS) return { outcome: "waiting", note: "", retry: false };
  if (reason === "tool_limit") {
    return end("interrupted", `The model kept using tools and never got to an answer. ${ASK_AGAIN}`);
  }
  return FINISHED[readFinish(reason)];
}

function describeGatewayError(error: GatewayError, { model, now }: EndingContext): Ending {
  const { kind, status, reason, retryAfterMs, isPause } = error;
  // "The model is not available" may be true for a moment only.
  const mayPass = reason === "unknown-model" && PASSING.has(kind);
  if (reason !== undefined && !mayPass) return describeRefusal(reason, model);
  const retryLater = `Press Retry ${describeWait(retryAfterMs, now)}.`;
  if (isPause && kind !== "rate-limited") {
    return end("failed", `The AI service failed, so I'm waiting before I ask again. ${retryLater}`);
  }
  switch (kind) {
    case "rate-limited":
      return end("failed", `The AI service is limiting requests to the model ${quote(model)}. ${retryLater}`);
    case "overloaded": {
      const trouble = BUSY_STATUSES.has(status) ? "is overloaded right now" : `failed${toStatus(status)}`;
      return end("failed", `The AI service ${trouble}. ${retryLater}`);
    }
    case "unreachable":
      return end(
        "failed",
        "I can't reach the AI service. Press Retry in a minute. If that doesn't help, the operator can check the network and `GATEWAY_BASE_URL`.",
      );
    case "stalled":
      return end("interrupted", `The AI service stopped sending. ${ASK_AGAIN}`);
    case "interrupted":
      return BROKE_OFF;
    case "malformed":
      return end(
        "interrupted",
        `The AI service sent something that is not an answer. ${ASK_AGAIN} If that doesn't help, the operator can check \`GATEWAY_BASE_URL\`.`,
      );
    case "unauthorized":
      return final(
        "failed",
        status === 403
          ? `The AI service doesn't let this bot use the model ${quote(model)} (403). The operator can check what its key is allowed to use.`
          : "The AI service doesn't accept this bot's key. The operator can check `GATEWAY_API_KEY`.",
      );
    case "rejected":
      break;
  }
  return describeRejected(status, model);
}

function describeRefusal(reason: GatewayErrorReason, model: string): Ending {
  if (reason === "filtered") return FILTERED;
  if (reason === "too-long") return tooLong(model);
  if (reason === "no-credit") {
    return final("failed", "This bot's account with the AI service has no credit left. The operator can add credit.");
  }
  return final(
    "failed",
    `The AI service has no model ${quote(model)} for this bot. The operator can check the model's name and what the bot's key is allowed to use.`,
  );
}

/** A refusal without a known reason. Without a status, the request broke the rules of the interface. */
function describeRejected(status: number | undefined, model: string): Ending {
  if (status === 413) return tooLong(model);
  if (status === 404) {
    return final(
      "failed",
      `The AI service found nothing at the address that the bot asked (404). The operator can check \`GATEWAY_BASE_URL\` and the name of the model ${quote(model)}.`,
    );
  }
  if (status === undefined) {
    return final("failed", "The bot could not ask the AI service this. The bot's log says why.");
  }
  return final("failed", `The AI service refused this request${toStatus(status)}. The bot's log says why.`);
}

function tooLong(model: string): Ending {
  return final(
    "failed",
    `This conversation, with its files, is too long for the model ${quote(model)}. Send less, or start a new conversation.`,
  );
}

function toStatus(status: number | undefined): string {
  return status === undefined ? "" : ` (${status})`;
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

function quote(model: string): string {
  return `\`${model.replaceAll("`", "'")}\``;
}

function isDomException(error: unknown, name: string): boolean {
  return error instanceof DOMException && error.name === name;
}
