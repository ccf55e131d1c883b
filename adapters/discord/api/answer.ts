import type { ResponseLike } from "discord.js";
import type { Receipt } from "../../../src/port/sink.ts";
import { ApiError } from "./error.ts";

const MAX_WORDS = 200;
/** What stands in front of Discord shuts out for longer than it says, where it says nothing. */
const SHUT_OUT_MS = 60_000;

/** What Discord answered to a call that it carried out. */
export interface Answer extends Receipt {
  data: unknown;
}

/** Reads an answer to its end. Throws an `ApiError` for anything but success. */
export async function readAnswer(method: string, response: ResponseLike): Promise<Answer> {
  const data = readJson(await response.text());
  if (!response.ok) throw toApiError(method, response, data);
  return { data, ...readReceipt(response.headers) };
}

/** Whatever type it claims to be of: Discord's answers are JSON or nothing. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readReceipt(headers: ResponseLike["headers"]): Receipt {
  const read = (name: string) => Number(headers.get(`x-ratelimit-${name}`) ?? Number.NaN);
  const budget = { limit: read("limit"), remaining: read("remaining"), resetAfterMs: read("reset-after") * 1_000 };
  return Object.values(budget).every(Number.isFinite) ? { budget } : {};
}

function toApiError(method: string, { status, headers }: ResponseLike, data: unknown): ApiError {
  const isForeign = typeof data !== "object" || data === null;
  const body = (isForeign ? {} : data) as Record<string, unknown>;
  const code = typeof body["code"] === "number" ? body["code"] : 0;
  const words = typeof body["message"] === "string" ? `: ${body["message"].slice(0, MAX_WORDS)}` : "";
  const message = `Discord answered a ${method} with ${status}${code === 0 ? "" : ` (code ${code})`}`;
  const isShared = headers.get("x-ratelimit-scope") === "shared";
  const isGlobal = headers.has("x-ratelimit-global") || body["global"] === true;
  return new ApiError(message, {
    quote: `${words}.`,
    status,
    code,
    scope: isGlobal ? "global" : isShared ? "shared" : "own",
    isForeign,
    ...(status === 429 && { retryAfterMs: readRetryAfter(body, headers) ?? (isForeign ? SHUT_OUT_MS : 1_000) }),
  });
}

/** The body says it to the millisecond, the header in whole seconds. */
function readRetryAfter(body: Record<string, unknown>, headers: ResponseLike["headers"]): number | undefined {
  const seconds = Number(body["retry_after"] ?? headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.ceil(seconds * 1_000) : undefined;
}
