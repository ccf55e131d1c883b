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
/** Words of the network for a server that was never reached. */
const UNREACHED = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);
/** The SDK's codes and names for a reply that it cannot read. The SDK is loaded with the first server. */
const UNREADABLE = new Set(["INVALID_RESULT", "CLIENT_HTTP_UNEXPECTED_CONTENT", "SyntaxError", "ZodError"]);
/** The SDK's codes for a reply that asks us or a person for something. */
const ASKING = new Set(["CAPABILITY_NOT_SUPPORTED", "INPUT_REQUIRED_ROUNDS_EXCEEDED", "UNSUPPORTED_RESULT_TYPE"]);
/** With these a proxy says that it lost the server, or did not wait for its reply. */
const UNANSWERED = new Set([408, 502, 504, 520, 524]);
/** Longest words of a failure: some servers answer with a whole page. */
const MAX_FAILURE_CHARS = 2_000;
const MAX_READ_CHARS = 20_000;

/** Describes what fails at one server, without its secrets. */
export interface Failures {
  /** One short line: the kind of the error, and other people's words as a quote. */
  toProblem(error: unknown): LoggableError;
  /**
   * The error of a call. A reply is an answer: the tool failed, and the model reads why. Without a reply, the call may
   * have been done.
   */
  toCallError(error: unknown, session: Session): LoggableError | ToolError;
}

export function createFailures(config: McpServerConfig): Failures {
  const { name: server } = config;
  const { text: redact } = createRedactor(secretsOfMcp(config));

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
          `The server "${server}" asks for more first, which it cannot get here. It has not done it.`,
        );
      }
      const status = toStatus(error, session.sdk);
      if (status !== undefined && status >= 400 && !UNANSWERED.has(status)) {
        return toAnswer(`HTTP ${status}`, readBody(error, session.sdk));
      }
      const isUnsent = (error instanceof SdkError && error.code === SdkErrorCode.NotConnected) || isUnreached(error);
      // Any other failure is that of one call, and cuts no other.
      if (!isUnsent) return toProblem(error);
      session.end(toProblem(error));
      return new ToolError(`The server "${server}" did not take the call. Answer without it, and say so.`);
    },
  };
}

/** A whole page may come: only its beginning is read. A key that is cut there is not shown. */
function toRead(text: string): string {
  return text.slice(0, MAX_READ_CHARS);
}

/** "" for none, and for one that is nested too deeply. */
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

/** The name of an error, its answer's number, and the code of whatever made it fail. */
export function describeKind(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const status = "status" in error && typeof error.status === "number" ? `HTTP ${error.status}` : "";
  const code = Reflect.get(deepestCause(error), "code");
  return [error.name, status, isName(String(code ?? "")) ? String(code) : ""].filter((word) => word !== "").join(" ");
}

/** Describes an error by its innermost cause: why a connection failed. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message } = deepestCause(error);
  const more = error.message.includes(message) ? "" : `, ${message}`;
  return toRead(error.message).trimEnd().replace(/:$/, "") + more;
}

function deepestCause(error: Error): Error {
  return error.cause instanceof Error ? deepestCause(error.cause) : error;
}

/** The number with which a server refused a request. The SDK's transport for `sse` has it in its words alone. */
export function toStatus(error: unknown, { SdkHttpError }: Sdk): number | undefined {
  if (error instanceof SdkHttpError) return error.status;
  const [, status] = /^Error: Error POSTing to endpoint \(HTTP (\d{3})\)/.exec(String(error)) ?? [];
  return status === undefined ? undefined : Number(status);
}

/** A reply came, so the call was made, even if the SDK cannot read it. */
export function toUnreadable(error: unknown): CallToolResult {
  const kinds = error instanceof Error ? [error.name, Reflect.get(error, "code")] : [];
  if (!kinds.some((kind) => UNREADABLE.has(String(kind)))) throw error;
  return { content: [{ type: "text", text: "[The call was made; its result has a form that cannot be read here.]" }] };
}

/** The words of a refusal: of JSON-RPC, or the page that came. */
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
