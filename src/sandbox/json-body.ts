import type { IncomingMessage } from "node:http";
import { ApiError, toInvalidRequest } from "./errors.ts";

/** Large enough for a few reference images in base64. */
export const MAX_BODY_BYTES = 20 * 1024 * 1024;

/** Reads a JSON object. Throws a 415, a 413 above `MAX_BODY_BYTES`, or a 400. Rejects when the caller disconnects. */
export async function readJsonBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  requireJsonType(request);
  const bytes = await readBytes(request);
  if (bytes.length === 0) throw toInvalidRequest("The body is empty. Send a JSON object.", "invalid_json", null);
  const body = parseJson(bytes);
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as Record<string, unknown>;
  throw toInvalidRequest(`The body must be a JSON object, not ${describeType(body)}.`, "invalid_type", null);
}

/** Names the type of a JSON value with its article, such as "an object", for error messages. */
export function describeType(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  return `a ${typeof value}`;
}

function requireJsonType({ headers }: IncomingMessage): void {
  const type = headers["content-type"];
  if (type === undefined || !/^application\/json\s*(;\s*charset="?utf-?8"?\s*)?$/i.test(type)) {
    const sent = type === undefined ? "none was sent" : `not ${JSON.stringify(type)}`;
    throw unsupported(`The header Content-Type must be application/json; ${sent}.`, "unsupported_content_type");
  }
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw unsupported("The body must not be compressed: leave Content-Encoding away.", "unsupported_content_encoding");
  }
}

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  if (Number(request.headers["content-length"] ?? 0) > MAX_BODY_BYTES) throw tooLarge(request);
  const parts: Buffer[] = [];
  let sizeBytes = 0;
  // Leaving `for await` early would destroy the socket before the caller gets the response.
  return await new Promise((resolve, reject) => {
    request.on("data", (part: Buffer) => {
      sizeBytes += part.length;
      if (sizeBytes <= MAX_BODY_BYTES) {
        parts.push(part);
        return;
      }
      request.removeAllListeners("data");
      reject(tooLarge(request));
    });
    request.on("end", () => resolve(Buffer.concat(parts)));
    request.on("error", reject);
    request.on("close", () => reject(new Error("The caller left while sending its body.")));
  });
}

function tooLarge(request: IncomingMessage): ApiError {
  // Reads and drops the rest, because callers read the response only after sending everything. A time limit ends this.
  request.resume();
  return new ApiError(`The body is larger than ${MAX_BODY_BYTES} bytes.`, {
    status: 413,
    type: "invalid_request_error",
    code: "request_too_large",
  });
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    const reason = error instanceof SyntaxError ? error.message : "it is not UTF-8";
    throw toInvalidRequest(`The body is not valid JSON: ${reason}`, "invalid_json", null);
  }
}

function unsupported(message: string, code: string): ApiError {
  return new ApiError(message, { status: 415, type: "invalid_request_error", code });
}
