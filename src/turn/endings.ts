import type { ChatMessage } from "../gateway/chunks.ts";
import type { Fallback } from "../gateway/client.ts";
import { GatewayError, type GatewayErrorKind, type GatewayErrorReason, PASSING } from "../gateway/errors.ts";
import type { HistoryEntry } from "../history/record.ts";
import { toEditionId } from "../port/ids.ts";
import type { Button, ReplySink } from "../port/sink.ts";
import { QuotaError } from "../quota/quota.ts";
import type { Cause } from "../reply/reply.ts";
import type { AnswerOptions } from "../settings/answer-options.ts";
import { quoteName } from "../text/quote-name.ts";
import type { TurnLedger } from "../tools/ledger.ts";
import { formerOf, toButtonsOfRun } from "./posted-answer.ts";
import type { TurnRecord } from "./record.ts";
import { NotPermittedError } from "./rights.ts";
import { toRerunButton, toWaitingButtons } from "./tool-approval.ts";

type Outcome =
  | "complete"
  | "waiting"
  | "length"
  | "filtered"
  | "refused"
  | "interrupted"
  | "stopped"
  | "failed"
  | "shutdown";

/** The finish reason if tool calls wait for a person's decision. No gateway sends this reason. */
export const WAITS = "waits for a person";

export interface Ending {
  outcome: Outcome;
  /** One line of Markdown, shown under the text, or alone if there is no text. "" if the answer is complete. */
  note: string;
  retry: boolean;
}

interface EndingContext {
  model: string;
  /** The name of the person who stopped the answer. "you" if only that person reads the answer. */
  stoppedBy?: string | undefined;
  /** The current time in Unix milliseconds. */
  now: number;
}

const ASK_AGAIN = "Press Retry to ask again.";

const FILTERED = end("filtered", "A content filter stopped this answer. Rephrase your request, or press Retry.");

const BROKE_OFF = end("interrupted", `The answer broke off before it was finished. ${ASK_AGAIN}`);

const FINISHED: Readonly<Record<Finish, Ending>> = {
  whole: { outcome: "complete", note: "", retry: false },
  length: end("length", "The answer hit the length limit. Press Continue for the rest."),
  filtered: FILTERED,
  broken: BROKE_OFF,
};

/** The HTTP statuses with which a busy service answers. */
const BUSY_STATUSES: ReadonlySet<number | undefined> = new Set([429, 503, 529]);

/** For a wait longer than this, people get a clock time, which is easier to follow than a countdown. */
const LONGEST_COUNTDOWN_MS = 90_000;

/** For a wait longer than this, the bot says "another day". A very large number is not even a valid date. */
const LONGEST_WAIT_MS = 30 * 86_400_000;

/**
 * Says in plain words how a turn ended and what people can do next. The error can be an `AbortReason`, or `filtered`
 * for a text that the platform's own filter rejected. Never quotes an error, a body, a URL or a key.
 */
export function describeEnding(cause: Cause, context: EndingContext): Ending {
  if ("finish" in cause) return describeFinish(cause.finish);
  const { error } = cause;
  if (error instanceof NotPermittedError) return final("failed", error.message);
  if (error instanceof GatewayError) return describeGatewayError(error, context);
  if (error instanceof QuotaError) return { outcome: "refused", note: `_${error.message}_`, retry: true };
  if (error === "stopped") return end("stopped", describeStop(context.stoppedBy));
  if (error === "given-up") return end("failed", `I tried several times and couldn't finish this answer. ${ASK_AGAIN}`);
  if (error === "shutdown") return end("shutdown", `I was shut down before I finished this answer. ${ASK_AGAIN}`);
  if (error === "refused") return end("interrupted", `I can't write more of this answer here. ${ASK_AGAIN}`);
  if (error === "filtered") {
    return end(
      "filtered",
      "A filter here blocked the answer. Rephrase your request, or talk to the people who manage the filter.",
    );
  }
  if (isDomException(error, "TimeoutError")) {
    return end("interrupted", `The answer took longer than allowed. ${ASK_AGAIN}`);
  }
  if (isDomException(error, "AbortError")) return end("interrupted", `The answer was interrupted. ${ASK_AGAIN}`);
  return end("failed", `Something went wrong on my side. My log has the details. ${ASK_AGAIN}`);
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
  // Some gateways say during a short outage that they don't know the model.
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

/** Describes a request that the AI service rejected. Without a status, the bot did not send the request. */
function describeRejected(status: number | undefined, model: string): Ending {
  if (status === 413) return tooLong(model);
  if (status === 404) {
    return final(
      "failed",
      `The AI service found nothing at its address (404). The operator can check \`GATEWAY_BASE_URL\` and the name of the model ${quote(model)}.`,
    );
  }
  if (status === undefined) {
    return final("failed", "I couldn't send this request to the AI service. My log says why.");
  }
  return final("failed", `The AI service refused this request${toStatus(status)}. My log says why.`);
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

/** Creates an ending that offers Retry. */
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
  // Rounds up to the minute, because the wait must be over at the time that people read.
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

export type Finish = "whole" | "length" | "filtered" | "broken";

const FINISHES: ReadonlyMap<string, Finish> = new Map<string, Finish>([
  ...toEntries("whole", "stop end_turn stop_sequence eos eos_token tool_calls tool_use function_call"),
  ...toEntries("whole", "complete completed done"),
  ...toEntries("length", "length max_tokens model_length max_output_tokens"),
  ...toEntries("filtered", "content_filter safety prohibited_content recitation blocklist spii refusal"),
  ...toEntries("filtered", "image_safety guardrail_intervened sensitive"),
]);

function toEntries(finish: Finish, reasons: string): Array<[string, Finish]> {
  return reasons.split(" ").map((reason) => [reason, finish]);
}

/** Reads a gateway's `finish_reason`. An unknown reason, such as `network_error`, means that the answer broke off. */
export function readFinish(reason: string): Finish {
  return FINISHES.get(reason.toLowerCase()) ?? "broken";
}

export function describeFallback(fallback: Fallback, model: string): string {
  return `_Answered by ${describeOther(fallback, model)}, because ${describeReason(fallback.because, model)}._`;
}

/**
 * Names the model that answered, unless that is `model`. Also names the second AI service, if that service answered.
 */
export function describeOther({ model: other, isSecondGateway }: Fallback, model?: string): string {
  const service = isSecondGateway ? "the second AI service" : "";
  return [other === model ? "" : quoteName(other), service].filter(Boolean).join(" of ");
}

/** Says why the first model did not answer. The text is the end of a sentence. */
export function describeReason(because: GatewayErrorKind, model: string): string {
  if (because === "unreachable") return "I couldn't reach the first one";
  if (because === "rate-limited") return `${quoteName(model)} is at its rate limit`;
  return `${quoteName(model)} ${because === "rejected" ? "refused the request" : "didn't answer"}`;
}

/** The name of the adaptation for a model that cannot see the pictures that tools returned. */
export const PICTURES_OF_TOOLS = "pictures of tools";

const SEES_NOTHING = "can't see images, so it answered from the text alone";

/** Maps the name of each adaptation that people notice to its consequence for the answer. */
const CONSEQUENCES: ReadonlyArray<[name: string, consequence: string]> = [
  ["temperature", "doesn't accept a temperature, so it used its own"],
  ["max_tokens", "doesn't accept this length limit, so it used its own"],
  ["response_format", "doesn't support JSON output, so I asked for JSON in the prompt"],
  ["web_search_options", "can't search the web, so it answered without a search"],
  ["pictures", SEES_NOTHING],
  [PICTURES_OF_TOOLS, SEES_NOTHING],
  ["tools", "can't use tools, so it answered without them"],
];

interface Asked {
  /** The model that answered. */
  model: string;
  options: AnswerOptions;
  messages: readonly ChatMessage[];
}

/**
 * Says in one line of Markdown which of the channel's options the model did not accept. "" if it accepted all of them.
 * Mentions tools only under the first answer of a conversation.
 */
export function describeDropped(names: ReadonlySet<string>, { model, options, messages }: Asked): string {
  const wanted: Readonly<Record<string, boolean>> = {
    temperature: options.temperature !== undefined,
    max_tokens: options.maxTokens !== undefined,
    response_format: options.format !== undefined,
    web_search_options: options.web !== undefined,
    pictures: hasPictures(messages),
    [PICTURES_OF_TOOLS]: true,
    tools: !messages.some(({ role }) => role === "assistant"),
  };
  const lacks = CONSEQUENCES.filter(([name]) => names.has(name) && wanted[name]).map(([, consequence]) => consequence);
  const sentences = [...new Set(lacks)].map((consequence, index) =>
    index === 0 ? `The model ${quoteName(model)} ${consequence}.` : `It ${consequence}.`,
  );
  return sentences.length === 0 ? "" : `_${sentences.join(" ")}_`;
}

function hasPictures(messages: readonly ChatMessage[]): boolean {
  const question = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
  return question.some(
    ({ content }) => typeof content !== "string" && content.some(({ type }) => type === "image_url"),
  );
}

interface AnswerShown {
  readonly record: Pick<TurnRecord, "id" | "edition" | "scheduled">;
  readonly sink: Pick<ReplySink, "traits">;
  readonly before: HistoryEntry | undefined;
  readonly ledger: Pick<TurnLedger, "waiting" | "uncertain">;
}

export function toEndingButtons(shown: AnswerShown, ending: Ending): Button[] {
  return [...toButtonsOfTurn(shown, ending), ...toButtonsOfRun(shown.record)];
}

function toButtonsOfTurn({ record, sink, before, ledger }: AnswerShown, ending: Ending): Button[] {
  const { id: turnId, edition } = record;
  const waiting = ledger.waiting();
  // Shows only the buttons for the decision, because a new answer would replace the message that asks for it.
  if (ending.outcome === "waiting" && waiting !== undefined) return toWaitingButtons(turnId, waiting);
  const numbers = [...formerOf(before, edition).map((one) => one.edition), edition];
  const steps = toEditionButtons(turnId, numbers, edition);
  const others = [...steps, ...toExplainButton(record, sink)];
  const retry: Button[] = ending.retry ? [{ action: "retry", turnId, label: "Retry" }] : [];
  const uncertain = ledger.uncertain();
  if (uncertain.length > 0) return [toRerunButton(turnId, uncertain), ...retry, ...others];
  if (canContinue(ending)) return [{ action: "continue", turnId, label: "Continue" }, ...others];
  if (ending.retry) return [...retry, ...others];
  return ending.outcome === "complete" ? [...steps, ...toAnswerButtons(record, sink)] : others;
}

export function canContinue({ outcome, retry }: Ending): boolean {
  return outcome === "length" && retry;
}

export function toAnswerButtons(
  { id: turnId, edition }: Pick<TurnRecord, "id" | "edition">,
  { traits }: Pick<ReplySink, "traits">,
): Button[] {
  if (traits?.secondThoughts !== true) return [];
  const editionId = toEditionId(turnId, edition);
  return [
    { action: "regenerate", turnId: editionId, label: "Regenerate" },
    ...toExplainButton({ id: turnId }, { traits }),
    { action: "good", turnId: editionId, label: "Good answer" },
    { action: "bad", turnId: editionId, label: "Bad answer" },
  ];
}

export function toExplainButton(
  { id: turnId }: Pick<TurnRecord, "id">,
  { traits }: Pick<ReplySink, "traits">,
): Button[] {
  return traits?.secondThoughts === true ? [{ action: "explain", turnId, label: "What did you see?" }] : [];
}

/** The buttons with which people switch to the previous and the next of several answers. */
export function toEditionButtons(turnId: string, editions: readonly number[], shown: number): Button[] {
  const at = editions.indexOf(shown);
  const [before, after] = [editions[at - 1], editions[at + 1]];
  const toButton = (edition: number, label: string): Button => {
    return { action: "show", turnId: toEditionId(turnId, edition), label };
  };
  const place = `${at + 1}/${editions.length}`;
  // Only one button shows the number, such as "2/3": the one that goes back, or else the one that goes forward.
  if (before === undefined) return after === undefined ? [] : [toButton(after, `${place} ›`)];
  return [toButton(before, `‹ ${place}`), ...(after === undefined ? [] : [toButton(after, "›")])];
}
