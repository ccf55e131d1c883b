import type { IncomingHttpHeaders } from "node:http";
import { errors } from "undici";
import { GatewayError, type GatewayErrorKind, type GatewayErrorReason } from "./errors.ts";
import { isRecord, parseJson } from "./json.ts";
import type { SafeText } from "./safe-text.ts";
import { describeSeconds } from "./watch.ts";

/** The gateway's own description of an error, safe to log. */
interface ErrorObject {
  type: string | undefined;
  code: string | undefined;
  param: string | undefined;
  message: string;
  /** The wait in milliseconds that the response's body asks for. */
  retryAfterMs: number | undefined;
}

const CONNECTION_WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens at its address",
  ENOTFOUND: "its host name is not known",
  EAI_AGAIN: "its host name could not be looked up",
  ECONNRESET: "it closed the connection",
  EPIPE: "it closed the connection",
  UND_ERR_SOCKET: "it closed the connection",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "its response is not as long as its header says",
  UND_ERR_HEADERS_OVERFLOW: "the headers of its response are too large",
  UND_ERR_CONNECT_TIMEOUT: "it did not accept the connection in time",
  ETIMEDOUT: "it did not accept the connection in time",
  EHOSTUNREACH: "there is no route to its host",
  ENETUNREACH: "there is no route to its network",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS; its address may have to begin with http://",
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate chain is self-signed",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate cannot be verified",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host name",
};

/** The error codes of a connection that was closed after it had been open. */
const CUTS: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

/** The causes of refusals, by code and by words: many gateways send no code, or the same code for everything. */
const REASONS: ReadonlyArray<readonly [GatewayErrorReason, code: RegExp, words: RegExp]> = [
  [
    "no-credit",
    /insufficient_(quota|balance|credits?|funds)|exceeded_current_quota|billing|payment_required|credit_balance|out_of_credits|budget_exceeded|blocked_api_access/i,
    /insufficient (balance|credits?|funds|quota)|credit balance is too low|out of credits|requires more credits|exceeded your (current )?quota|account is not active|has been suspended.{0,40}(balance|billing)|(credits?|balance) (is|are|has been|have been) (exhausted|used up|depleted)|used all available credits|spending limit/i,
  ],
  [
    "too-long",
    /context_(length|window)|(prompt|input|request|context)_too_long|request_too_large|string_above_max/i,
    /\b(maximum|max|model'?s) context (length|window|size)\b|\b(prompt|input|request|messages) (is|are|has) too (long|many tokens)|exceeds? the (available |maximum )?context\b|input token count .{0,40}exceeds|too large for model with \d+ maximum context|context (length|window|size) (exceeded|is too small)/i,
  ],
  [
    "filtered",
    /content_?(filter|policy|management)|safety|moderation|guardrail|sensitive/i,
    /content (management|safety|moderation) (policy|system)|flagged (as|by|for)|(violat\w+|against) .{0,30}(content|usage|safety) polic/i,
  ],
  [
    "unknown-model",
    /model_?not_?(found|available|exist\w*|supported)|(unknown|invalid)_?model|no_such_model|deployment_?not_?found/i,
    /\bmodel\b.{0,120}(does not exist|not found|is not available|was not found|not a valid model|isn't available|is unknown|not supported for generateContent)|(no such|unknown|invalid) model|not a valid model/i,
  ],
];

/** Statuses by the error's type or code. Server failures are not listed, because such a request can cost something. */
const NAMED_STATUSES: ReadonlyMap<string, number> = new Map([
  ["invalid_request_error", 400],
  ["INVALID_ARGUMENT", 400],
  ["context_length_exceeded", 400],
  ["content_policy_violation", 400],
  ["authentication_error", 401],
  ["insufficient_quota", 402],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["model_not_found", 404],
  ["rate_limit_error", 429],
  ["rate_limit_exceeded", 429],
]);
/** The server timed out, is locked or asks for the same request again, so the next attempt may succeed. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 409, 425]);
/** Not implemented, or the wrong version of HTTP: the next attempt gets the same response. */
const LASTING_STATUSES: ReadonlySet<number> = new Set([501, 505]);

/** Turns a response with a status other than 2xx into an error. `body` can be anything, or empty. */
export function toStatusError(
  status: number,
  headers: IncomingHttpHeaders,
  body: string,
  model: string | undefined,
  safe: SafeText,
): GatewayError {
  const object = readErrorObject(parseJson(body), safe);
  const headerMs = readRetryAfter(headers["retry-after"], Date.now());
  return toRefusal(status, { object, words: object?.message ?? describeBody(body, safe), headerMs, model });
}

/**
 * Turns an error object in a 2xx response into an error. Before the answer starts, it counts as the refusal that the
 * object names. If the answer `hasBegun`, or the object names no refusal, it counts as `interrupted`.
 */
export function toStreamError(value: unknown, safe: SafeText, hasBegun = false): GatewayError {
  const object = readErrorObject(value, safe);
  const words = object?.message ?? "";
  const status = hasBegun ? undefined : readNamedStatus(object);
  if (status !== undefined) return toRefusal(status, { object, words, headerMs: undefined, model: undefined });
  const { type, code, param } = object ?? {};
  const reason = object && readReason(object);
  const options = { quote: toQuote(words), type, code, param, reason };
  return new GatewayError("interrupted", "The gateway ended its answer with an error.", options);
}

interface Refusal {
  object: ErrorObject | undefined;
  words: string;
  headerMs: number | undefined;
  model: string | undefined;
}

function toRefusal(status: number, { object, words, headerMs, model }: Refusal): GatewayError {
  const retryAfterMs = headerMs ?? object?.retryAfterMs;
  const named = status === 402 ? "no-credit" : object && readReason(object);
  // Some gateways report a rate limit in the words for an account without credit, but also name a wait.
  const isLimit = status === 429 && retryAfterMs !== undefined && object?.code?.startsWith("insufficient") !== true;
  const reason = named === "no-credit" && (isLimit || status >= 500) ? undefined : named;
  // The model wrote a call that its server could not read, so the next attempt may succeed.
  const isFailedCall = object?.code === "tool_use_failed";
  const kind = reason === "no-credit" ? "rejected" : isFailedCall ? "interrupted" : toKind(status);
  const wait = retryAfterMs === undefined ? "" : ` It asks you to wait ${describeSeconds(retryAfterMs)}.`;
  const { type, code, param } = object ?? {};
  const isFormless = object === undefined;
  const options = { status, quote: toQuote(words), type, code, param, reason, retryAfterMs, isFormless };
  return new GatewayError(kind, `${describeStatus(kind, status, model)}${wait}`, options);
}

function toQuote(words: string): string {
  return words === "" ? "" : ` It said: ${endSentence(words)}`;
}

/** Ends a quoted sentence with a full stop, unless it has an end mark. */
export function endSentence(words: string): string {
  return /[.!?…。！？]["'”’)\]]*$/.test(words) ? words : `${words}.`;
}

/** Turns a connection failure before (`unreachable`) or during (`interrupted`) an answer into an error. */
export function toConnectionError(kind: "unreachable" | "interrupted", error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof errors.HTTPParserError) {
    return new GatewayError("malformed", "The gateway's response is not HTTP.", { cause: error });
  }
  const code = readCode(error);
  if (code === "Z_DATA_ERROR") {
    const message = "The gateway's response says that it is compressed, but it cannot be read.";
    return new GatewayError("malformed", message, { cause: error });
  }
  const words = (code === undefined ? undefined : CONNECTION_WORDS[code]) ?? "the connection failed";
  const begin = kind === "unreachable" ? "The gateway cannot be reached" : "The gateway's answer broke off";
  const isCut = kind === "unreachable" && CUTS.has(code ?? "");
  const name = code === undefined ? "" : ` (${code})`;
  return new GatewayError(kind, `${begin}: ${words}${name}.`, { cause: error, isCut });
}

/** Reads a number of seconds or an HTTP date. Returns milliseconds: 0 for the past, undefined for anything else. */
export function readRetryAfter(header: string | string[] | undefined, nowMs: number): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim();
  if (text === undefined) return undefined;
  if (/^\d+(?:\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1_000);
  if (!/^[A-Za-z]{3}/.test(text)) return undefined;
  // HTTP dates have three forms. The form without a time zone means GMT.
  const at = Date.parse(/GMT|UTC|[+-]\d{4}$/.test(text) ? text : `${text} GMT`);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

/** True if the value is or contains an error object. Some servers send the object without `error` around it. */
export function hasError(value: unknown): boolean {
  if (!isRecord(value)) return false;
  return (value.error !== undefined && value.error !== null && value.error !== false) || value.object === "error";
}

/** Reads `{error: {…}}`, `{error: "text"}`, an error object alone, and a list of one of these. */
function readErrorObject(value: unknown, safe: SafeText): ErrorObject | undefined {
  const outer: unknown = Array.isArray(value) ? value[0] : value;
  if (!isRecord(outer)) return undefined;
  const inner = outer.error ?? outer;
  const error: Record<string, unknown> = isRecord(inner) ? inner : { ...outer, message: inner };
  const broken = readBrokenRules(error.detail ?? (isRecord(error.message) ? error.message.detail : undefined));
  const said = [error.message, error.detail, broken?.message, error.error_description, error.msg];
  const message = safe.sentence(said.find((words) => typeof words === "string") ?? "");
  return {
    type: toName(error.type ?? error.status, safe),
    code: toName(error.code, safe) ?? broken?.code,
    param: toName(error.param, safe) ?? broken?.param,
    message: message === "" ? "" : [message, safe.sentence(readUpstream(error.metadata))].filter(Boolean).join(" "),
    retryAfterMs: readWait(error, message),
  };
}

/** Reads a list of broken rules in FastAPI's form: what is wrong, and the paths of the fields. */
function readBrokenRules(detail: unknown): { message: string; code?: string; param?: string } | undefined {
  const rules = Array.isArray(detail) ? detail.filter(isRecord).filter(({ msg }) => typeof msg === "string") : [];
  const [first] = rules;
  if (first === undefined) return undefined;
  const placeOf = ({ loc }: Record<string, unknown>) => (Array.isArray(loc) ? loc.filter(isStep).join(".") : "");
  const message = rules
    .slice(0, 5)
    .map((rule) => [placeOf(rule), rule.msg].filter(Boolean).join(": "))
    .join("; ");
  const param = placeOf(first).replace(/^body\./, "");
  return { message, ...(typeof first.type === "string" && { code: first.type }), ...(param !== "" && { param }) };
}

function isStep(step: unknown): boolean {
  return typeof step === "string" || typeof step === "number";
}

/** A relay's own message often says only that its provider refused. This field next to it quotes the provider. */
function readUpstream(metadata: unknown): string {
  const raw = isRecord(metadata) ? metadata.raw : undefined;
  if (typeof raw !== "string") return "";
  const inner = parseJson(raw);
  const error: unknown = isRecord(inner) ? (inner.error ?? inner) : undefined;
  return isRecord(error) && typeof error.message === "string" ? error.message : raw;
}

/** Google sends the wait in the details. Others send it in a field, or only in the sentence. */
function readWait(error: Record<string, unknown>, message: string): number | undefined {
  const details = Array.isArray(error.details) ? error.details.filter(isRecord) : [];
  const delay = details.map(({ retryDelay }) => retryDelay).find((value) => typeof value === "string");
  const field = error.retry_after ?? error.retryAfter;
  if (typeof field === "number" && field >= 0) return Math.ceil(field * 1_000);
  const words = /\b(?:try again|retry)(?: your request)? (?:in|after) ((?:\d+(?:\.\d+)? ?(?:ms|[hms])\w* ?)+)/i.exec(
    message,
  );
  return readDuration(delay ?? words?.[1] ?? "");
}

const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** Longer texts are not read as durations, because searching them takes quadratic time. */
const MAX_DURATION_CHARS = 100;

/** Reads a duration such as "36.2s", "6m0s" or "20 seconds" as milliseconds. */
function readDuration(text: string): number | undefined {
  if (text.length > MAX_DURATION_CHARS) return undefined;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?) ?(ms|[hms])/gi)];
  if (parts.length === 0) return undefined;
  return Math.ceil(
    parts.reduce((sum, [, count, unit = "s"]) => sum + Number(count) * (UNIT_MS[unit.toLowerCase()] ?? 0), 0),
  );
}

function toName(value: unknown, safe: SafeText): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? safe.sentence(value) : undefined;
}

function readReason({ type = "", code = "", message }: ErrorObject): GatewayErrorReason | undefined {
  const byCode = REASONS.find(([, codes]) => codes.test(`${type} ${code}`));
  return (byCode ?? REASONS.find(([, , words]) => words.test(message)))?.[0];
}

/** Some gateways send the status as the code. */
function readNamedStatus({ type = "", code = "" }: Partial<ErrorObject> = {}): number | undefined {
  return /^4\d\d$/.test(code) ? Number(code) : (NAMED_STATUSES.get(code) ?? NAMED_STATUSES.get(type));
}

function toKind(status: number): GatewayErrorKind {
  if (status === 429) return "rate-limited";
  if (status === 401 || status === 403) return "unauthorized";
  if (LASTING_STATUSES.has(status)) return "rejected";
  if (status >= 500 || PASSING_STATUSES.has(status)) return "overloaded";
  return status >= 400 ? "rejected" : "malformed";
}

function describeStatus(kind: GatewayErrorKind, status: number, model: string | undefined): string {
  const subject = model === undefined ? "" : ` for model ${model}`;
  if (kind === "rate-limited") return `The gateway's rate limit${subject} is reached (429).`;
  if (kind === "unauthorized") return `The gateway refused the key${subject} (${status}).`;
  if (kind === "overloaded") return `The gateway failed${subject} (${status}).`;
  if (kind === "rejected") return `The gateway refused the request${subject} (${status}).`;
  return status >= 300
    ? `The gateway responded with a redirect (${status}). Palaver does not follow redirects: set the final address.`
    : `The gateway responded with status ${status} and no body.`;
}

/** Quotes one line of a body without an error object, but never a web page. */
function describeBody(body: string, safe: SafeText): string {
  const text = body.trim();
  if (text === "" || text.startsWith("{") || text.startsWith("[")) return "";
  return text.startsWith("<") ? "(a web page instead of an error object)" : safe.sentence(text);
}

function readCode(error: unknown): string | undefined {
  if (!isRecord(error)) return undefined;
  if (typeof error.code === "string") return error.code;
  return error.cause === error ? undefined : readCode(error.cause);
}
