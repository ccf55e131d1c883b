import { ApiError, toInvalidRequest, toRateLimited } from "./errors.ts";

/** Every fault that can be asked for, with what it does. `=N` is its argument and may be left away. */
export const FAULTS = {
  "401": "answers 401, as if the key were unknown",
  "403": "answers 403, as if the key might not use the model",
  "429": "answers 429 with Retry-After of N seconds (2)",
  "429-date": "answers 429 with Retry-After as a date, N seconds ahead (2)",
  "429-bare": "answers 429 without Retry-After",
  "500": "answers 500",
  "503": "answers 503",
  reset: "closes the connection before the head of the answer",
  "slow-head": "waits N seconds (3) before the head of the answer",
  "slow-first-token": "sends the head, then waits N seconds (3) before the first event",
  html: "answers 200 with an HTML page",
  empty: "answers 200 with nothing in it",
  json: "answers a streaming request with the whole completion as JSON",
  stall: "goes silent after N pieces of text, connection open",
  "stall-keepalive": "as stall, with a keep-alive comment every second",
  cut: "closes the connection after N pieces of text",
  "cut-in-line": "as cut, in the middle of a line",
  "cut-in-character": "as cut, in the middle of a character",
  "no-done": "leaves [DONE] out and ends",
  "no-finish": "ends after N pieces of text without finish_reason and [DONE]",
  "done-open": "sends [DONE] and keeps the connection open",
  "malformed-chunk": "puts N (1) events with broken JSON between the others",
  "giant-line": "sends one line of N MiB (64) after the first piece of text",
  "error-mid-stream": "sends an error object after N pieces of text and ends",
  crlf: "ends lines with CR LF",
  bytes: "sends every byte by itself",
  length: "stops after N pieces of text with finish_reason length",
  "content-filter": "stops after N pieces of text with finish_reason content_filter",
  "broken-arguments": "breaks off the arguments of tool calls",
  "unknown-tool": "calls tools by a name that nobody offered",
  "usage-missing": "leaves usage out",
  "snake-case": "names the picture inline_data (images only)",
  "no-image": "answers with text and no picture (images only)",
  "not-an-image": "sends bytes that are no picture (images only)",
} as const satisfies Record<string, string>;

export type FaultName = keyof typeof FAULTS;

export interface Fault {
  name: FaultName;
  /** Seconds, pieces or MiB, as the fault's description says. */
  argument: number | undefined;
  /** Only the first of two like requests meets it: `503-once`. */
  isOnce: boolean;
}

const MAX_ARGUMENT = 600;

/** Reads `name`, `name=N` or `name-once`. Throws a 400 that lists the names there are. */
export function readFault(text: string, param: string | null): Fault {
  const [, stem = "", value] = /^([\w-]*)(?:=(\d{1,9}))?$/.exec(text.trim()) ?? [];
  const isOnce = stem.endsWith("-once");
  const name = isOnce ? stem.slice(0, -"-once".length) : stem;
  if (!Object.hasOwn(FAULTS, name)) {
    const names = Object.keys(FAULTS).join(", ");
    throw toInvalidRequest(`There is no fault ${JSON.stringify(text)}. There are: ${names}.`, "unknown_fault", param);
  }
  const argument = value === undefined ? undefined : Math.min(Number(value), MAX_ARGUMENT);
  return { name: name as FaultName, argument, isOnce };
}

/** The list of faults as Markdown, for a person who asks in the chat. */
export function describeFaults(): string {
  const rows = Object.entries(FAULTS).map(([name, effect]) => `- \`${name}\` ${effect}`);
  return [
    "I can break on purpose, so that you can see what the bot makes of it. Write `sandbox fault: NAME`, `NAME=N` or `NAME-once`:",
    rows.join("\n"),
  ].join("\n\n");
}

/** Faults that are an error and nothing else. Seconds are those of `Retry-After`. */
const ERRORS: Partial<Record<FaultName, (model: string, seconds: number) => ApiError>> = {
  "401": () => toServiceError(401, "authentication_error", "invalid_api_key", "The API key is not known."),
  "403": (model) =>
    toServiceError(403, "permission_error", "model_not_permitted", `This key may not use the model ${model}.`),
  "429": (model, seconds) => toRateLimited(model, { "retry-after": String(seconds) }),
  "429-date": (model, seconds) => toRateLimited(model, { "retry-after": toHttpDate(seconds) }),
  "429-bare": (model) => toRateLimited(model, {}),
  "500": () =>
    toServiceError(500, "server_error", "internal_error", "The server had an error while processing the request."),
  "503": () => toServiceError(503, "server_error", "overloaded", "The model is overloaded. Try again later."),
};

/** Throws the error that a fault consists of; returns for faults that happen inside an answer. */
export function raiseFault({ name, argument = 2 }: Fault, model: string): void {
  const error = ERRORS[name]?.(model, argument);
  if (error !== undefined) throw error;
}

/** Dates carry whole seconds: rounding up keeps the wait from being shorter than asked. */
function toHttpDate(seconds: number): string {
  return new Date(Math.ceil(Date.now() / 1000 + seconds) * 1000).toUTCString();
}

function toServiceError(status: number, type: string, code: string, message: string): ApiError {
  return new ApiError(message, { status, type, code });
}
