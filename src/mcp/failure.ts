import type { CallToolResult } from "@modelcontextprotocol/client";
import { z } from "zod";
import { type McpServerConfig, secretsOfMcp } from "../config/mcp-servers.ts";
import { isName } from "../log/fields.ts";
import { createRedactor } from "../log/redact.ts";
import { LoggableError } from "../port/errors.ts";
import { truncate } from "../text/truncate.ts";
import { ToolError } from "../tools/tool.ts";
import { describeResult } from "./result.ts";
import type { Sdk, Session } from "./session.ts";

const MAX_PROBLEM_CHARS = 200;
/** Network error codes that prove that the server did not get the request. */
const UNREACHED = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);
/**
 * The SDK's codes and error names for a response that it cannot read. They are copied here, because the SDK is loaded
 * only with the first server.
 */
const UNREADABLE = new Set(["INVALID_RESULT", "CLIENT_HTTP_UNEXPECTED_CONTENT", "SyntaxError", "ZodError"]);
/** The SDK's codes for a response in which the server asks for more input. */
const ASKING = new Set(["CAPABILITY_NOT_SUPPORTED", "INPUT_REQUIRED_ROUNDS_EXCEEDED", "UNSUPPORTED_RESULT_TYPE"]);
/** A proxy responds with one of these statuses if it lost the server or stopped waiting for it. */
const UNANSWERED = new Set([408, 502, 504, 520, 524]);
/** Maximum length of an error message, because some servers send a whole page. */
const MAX_FAILURE_CHARS = 2_000;
const MAX_READ_CHARS = 20_000;

/** Describes errors from one server without its secrets. */
export interface Failures {
  /** Describes an error in one short line. Text from outside becomes a quote. */
  toProblem(error: unknown): LoggableError;
  /**
   * Converts an error of a call. If the server responded, returns a `ToolError`: the tool failed, and the model reads
   * why. Without a response, it is unknown whether the tool ran.
   */
  toCallError(error: unknown, session: Session): LoggableError | ToolError;
}

export function createFailures(config: McpServerConfig, tokenForms: readonly RegExp[]): Failures {
  const { name: server } = config;
  const { text: redact } = createRedactor(secretsOfMcp(config), tokenForms);

  function toProblem(error: unknown): LoggableError {
    const isOwn = error instanceof LoggableError;
    const words = redact(toRead(isOwn ? error.quote : describeError(error))).replace(/[\p{C}\s]+/gu, " ");
    const line = truncate(words.replace(/^[: ]+/, "").trim(), MAX_PROBLEM_CHARS);
    return new LoggableError(isOwn ? error.logMessage : describeKind(error), line === "" ? {} : { quote: `: ${line}` });
  }

  function toAnswer(...words: string[]): ToolError {
    const text = truncate(redact(toRead(words.filter((word) => word !== "").join("\n"))), MAX_FAILURE_CHARS);
    return new ToolError(`The call failed. ${describeResult(server, { content: [{ type: "text", text }] }).text}`);
  }

  return {
    toProblem,
    toCallError(error, session) {
      const { SdkError, SdkErrorCode, ProtocolError } = session.sdk;
      if (error instanceof ProtocolError) return toAnswer(error.message, describeData(error.data));
      if (error instanceof SdkError && ASKING.has(error.code)) {
        return new ToolError(
          `The server "${server}" needs more input first, which is not supported here. It did not run the call.`,
        );
      }
      const status = toStatus(error, session.sdk);
      if (status !== undefined && status >= 400 && !UNANSWERED.has(status)) {
        return toAnswer(`HTTP ${status}`, readBody(error, session.sdk));
      }
      const isUnsent = (error instanceof SdkError && error.code === SdkErrorCode.NotConnected) || isUnreached(error);
      // Any other failure affects only this call.
      if (!isUnsent) return toProblem(error);
      session.end(toProblem(error));
      return new ToolError(`The server "${server}" did not accept the call. Answer without it, and say so.`);
    },
  };
}

/**
 * Returns the beginning of a text, because the text can be a whole page. The result is truncated further later, so a
 * secret cut in half here never becomes visible.
 */
function toRead(text: string): string {
  return text.slice(0, MAX_READ_CHARS);
}

/** Returns "" for data that is missing or nested too deeply. */
function describeData(data: unknown): string {
  if (typeof data === "string") return data;
  try {
    return JSON.stringify(data) ?? "";
  } catch {
    return "";
  }
}

function isUnreached(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("code" in error && UNREACHED.has(String(error.code))) || isUnreached(error.cause);
}

/** Returns the error's name, its HTTP status and the code of its innermost cause. */
export function describeKind(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const status = "status" in error && typeof error.status === "number" ? `HTTP ${error.status}` : "";
  const code = Reflect.get(deepestCause(error), "code");
  return [error.name, status, isName(String(code ?? "")) ? String(code) : ""].filter((word) => word !== "").join(" ");
}

/** Includes the innermost cause, because it says why a connection failed. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message } = deepestCause(error);
  const more = error.message.includes(message) ? "" : `, ${message}`;
  return toRead(error.message).trimEnd().replace(/:$/, "") + more;
}

function deepestCause(error: Error): Error {
  return error.cause instanceof Error ? deepestCause(error.cause) : error;
}

/** Returns the HTTP status of a rejected request. The SDK's `sse` transport has it only in the message. */
export function toStatus(error: unknown, { SdkHttpError }: Sdk): number | undefined {
  if (error instanceof SdkHttpError) return error.status;
  const [, status] = /^Error: Error POSTing to endpoint \(HTTP (\d{3})\)/.exec(String(error)) ?? [];
  return status === undefined ? undefined : Number(status);
}

/** Returns a failed result if the SDK cannot read the response: the server responded, so the tool ran. */
export function toUnreadable(error: unknown): CallToolResult {
  const kinds = error instanceof Error ? [error.name, Reflect.get(error, "code")] : [];
  if (!kinds.some((kind) => UNREADABLE.has(String(kind)))) throw error;
  return { content: [{ type: "text", text: "[The call was made, but its result is unreadable.]" }] };
}

/** Returns the server's message about a rejected request, from JSON-RPC or from the body. */
function readBody(error: unknown, { SdkHttpError }: Sdk): string {
  const given = error instanceof SdkHttpError ? error.data.text : undefined;
  const text = typeof given === "string" ? given : "";
  try {
    return rpcErrorSchema.parse(JSON.parse(text)).error.message;
  } catch {
    return text;
  }
}

const rpcErrorSchema = z.object({ error: z.object({ message: z.string() }) });
