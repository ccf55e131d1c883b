import type { IncomingHttpHeaders } from "node:http";
import { errors } from "undici";
import { GatewayError, type GatewayErrorKind, type GatewayErrorOptions } from "./errors.ts";
import type { SafeText } from "./safe-text.ts";
import { describeSeconds } from "./watch.ts";

/** The gateway's own words about what went wrong, made safe. */
interface ErrorObject {
  type: string | undefined;
  code: string | undefined;
  param: string | undefined;
  message: string;
}

const CONNECTION_WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens at its address",
  ENOTFOUND: "its host name is not known",
  EAI_AGAIN: "its host name could not be looked up",
  ECONNRESET: "it closed the connection",
  EPIPE: "it closed the connection",
  UND_ERR_SOCKET: "it closed the connection",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "its answer is not as long as it says",
  UND_ERR_HEADERS_OVERFLOW: "the headers of its answer are too large",
  UND_ERR_CONNECT_TIMEOUT: "it did not take the connection in time",
  ETIMEDOUT: "it did not take the connection in time",
  EHOSTUNREACH: "there is no way to its host",
  ENETUNREACH: "there is no way to its network",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS; its address may have to begin with http://",
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is signed by itself",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate chain is signed by itself",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate cannot be verified",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host name",
};

/** The network's words for a connection that was there. */
const CUTS: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

/** Many servers say in words alone that a request is longer than the model's context; the code is the usual one. */
const TOO_LONG =
  /\b(?:maximum|max|model'?s) context (?:length|window|size)\b|\b(?:prompt|input|request|messages) (?:is|are|has) too (?:long|many tokens)|exceeds? the (?:available |maximum )?context\b|input token count .{0,40}exceeds/i;
const TOO_LONG_CODE = "context_length_exceeded";
/**
 * Statuses by the type or the code of an error. Those of failures are left out: whether such a request has cost nothing
 * is not known once the gateway has taken it.
 */
const NAMED_STATUSES: ReadonlyMap<string, number> = new Map([
  ["invalid_request_error", 400],
  [TOO_LONG_CODE, 400],
  ["content_policy_violation", 400],
  ["authentication_error", 401],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["model_not_found", 404],
  ["rate_limit_error", 429],
  ["rate_limit_exceeded", 429],
]);
/** The server gave up waiting, is locked, or wants the same once more: the next attempt may well succeed. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 409, 425]);
/** Not implemented, and not this version of HTTP: the next attempt is answered in the same way. */
const LASTING_STATUSES: ReadonlySet<number> = new Set([501, 505]);

/** An answer with a status other than 2xx. `body` may be anything, also nothing. */
export function toStatusError(
  status: number,
  headers: IncomingHttpHeaders,
  body: string,
  model: string | undefined,
  safe: SafeText,
): GatewayError {
  const object = readErrorObject(parseJson(body), safe);
  const retryAfterMs = readRetryAfter(headers["retry-after"], Date.now());
  const words = object?.message ?? describeBody(body, safe);
  const quote = words === "" ? "" : ` It said: ${endSentence(words)}`;
  const options: GatewayErrorOptions = { status, quote, ...toOptions(object) };
  if (object === undefined) options.isFormless = true;
  if (retryAfterMs !== undefined) options.retryAfterMs = retryAfterMs;
  const kind = toKind(status);
  const wait = retryAfterMs === undefined ? "" : ` It asks to wait ${describeSeconds(retryAfterMs)}.`;
  return new GatewayError(kind, `${describeStatus(kind, status, model)}${wait}`, options);
}

/**
 * An error object inside an answer whose status was well. In the place of an answer it counts as the refusal that it
 * names; once an answer `hasBegun`, and where it names none, it breaks the answer off.
 */
export function toStreamError(value: unknown, safe: SafeText, hasBegun = false): GatewayError {
  const object = readErrorObject(value, safe);
  const quote = object === undefined || object.message === "" ? "" : ` It said: ${endSentence(object.message)}`;
  const status = hasBegun ? undefined : readNamedStatus(object);
  if (status === undefined) {
    const message = "The gateway broke its answer off with an error.";
    return new GatewayError("interrupted", message, { quote, ...toOptions(object) });
  }
  const kind = toKind(status);
  return new GatewayError(kind, describeStatus(kind, status, undefined), { status, quote, ...toOptions(object) });
}

/** Ends a quoted sentence, so that the next one does not run into it. */
export function endSentence(words: string): string {
  return /[.!?…。！？]["'”’)\]]*$/.test(words) ? words : `${words}.`;
}

/** A connection that failed before (`unreachable`) or within (`interrupted`) an answer. */
export function toConnectionError(kind: "unreachable" | "interrupted", error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof errors.HTTPParserError) {
    return new GatewayError("malformed", "The gateway's answer is not HTTP.", { cause: error });
  }
  const code = readCode(error);
  const words = (code === undefined ? undefined : CONNECTION_WORDS[code]) ?? "the connection failed";
  const begin = kind === "unreachable" ? "The gateway cannot be reached" : "The gateway's answer broke off";
  const isCut = kind === "unreachable" && CUTS.has(code ?? "");
  const name = code === undefined ? "" : ` (${code})`;
  return new GatewayError(kind, `${begin}: ${words}${name}.`, { cause: error, isCut });
}

/** Milliseconds from a number of seconds or an HTTP date; 0 for the past, undefined for anything else. */
export function readRetryAfter(header: string | string[] | undefined, nowMs: number): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim();
  if (text === undefined) return undefined;
  if (/^\d+(?:\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1_000);
  if (!/^[A-Za-z]{3}/.test(text)) return undefined;
  // One of the three HTTP date forms carries no zone; all of them mean GMT.
  const at = Date.parse(/GMT|UTC|[+-]\d{4}$/.test(text) ? text : `${text} GMT`);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

/** undefined when it is not JSON. The parser's own error quotes the text, so it goes no further. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The answer is, or carries, an error object. Some servers send one without its envelope. */
export function hasError(value: unknown): boolean {
  if (!isRecord(value)) return false;
  return (value.error !== undefined && value.error !== null && value.error !== false) || value.object === "error";
}

/** Understands `{error: {…}}`, `{error: "text"}`, an error without its envelope, and a list of one of these. */
function readErrorObject(value: unknown, safe: SafeText): ErrorObject | undefined {
  const outer: unknown = Array.isArray(value) ? value[0] : value;
  if (!isRecord(outer)) return undefined;
  const error = outer.error ?? outer;
  if (typeof error === "string") {
    return { type: undefined, code: undefined, param: undefined, message: safe.sentence(error) };
  }
  if (!isRecord(error)) return undefined;
  const words = error.message ?? describeDetail(error.detail) ?? error.error_description ?? error.msg;
  const message = typeof words === "string" ? safe.sentence(words) : "";
  return {
    type: toName(error.type ?? error.status, safe),
    code: TOO_LONG.test(message) ? TOO_LONG_CODE : toName(error.code, safe),
    param: toName(error.param, safe),
    message,
  };
}

/** Describes the first of a list of broken rules, as FastAPI writes it, and where it was broken. */
function describeDetail(detail: unknown): unknown {
  const [first] = Array.isArray(detail) ? (detail as unknown[]) : [];
  if (!isRecord(first) || typeof first.msg !== "string") return detail;
  return Array.isArray(first.loc) ? `${first.loc.join(".")}: ${first.msg}` : first.msg;
}

function toName(value: unknown, safe: SafeText): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? safe.sentence(value) : undefined;
}

/** Some gateways write the status as the code. */
function readNamedStatus({ type = "", code = "" }: Partial<ErrorObject> = {}): number | undefined {
  return /^4\d\d$/.test(code) ? Number(code) : (NAMED_STATUSES.get(code) ?? NAMED_STATUSES.get(type));
}

function toOptions(object: ErrorObject | undefined): GatewayErrorOptions {
  const options: GatewayErrorOptions = {};
  if (object?.type !== undefined) options.type = object.type;
  if (object?.code !== undefined) options.code = object.code;
  if (object?.param !== undefined) options.param = object.param;
  return options;
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
    ? `The gateway answered with a redirect (${status}), which is not followed: set its final address.`
    : `The gateway answered with status ${status} and no answer.`;
}

/** A body that holds no error object: a page is not quoted, a line of text is. */
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
