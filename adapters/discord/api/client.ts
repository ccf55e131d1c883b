import { createHash } from "node:crypto";
import { DefaultRestOptions, RateLimitError, type RawFile, REST, type ResponseLike, type RouteLike } from "discord.js";
import { checkFences } from "../../../src/concurrency/fence.ts";
import { createUnderWay } from "../../../src/concurrency/under-way.ts";
import type { Receipt } from "../../../src/port/sink.ts";
import { truncate } from "../../../src/text/truncate.ts";
import type { DiscordAdapterOptions } from "../options.ts";
import { ApiError } from "./error.ts";
import { createGlobalLimit, createGuard } from "./guard.ts";

/** Longest a call may take, the upload of its files included. */
const CALL_TIMEOUT_MS = 60_000;
/** The library's own limiter reads these. */
const LIMIT_HEADERS = ["limit", "remaining", "reset", "reset-after", "bucket"].map((name) => `x-ratelimit-${name}`);

export interface ApiCall {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  route: RouteLike;
  body?: unknown;
  files?: RawFile[];
  query?: URLSearchParams;
  /** False where the address itself carries a token: interactions. */
  isBot?: boolean;
}

/** Every call of the process to Discord, except those that make and keep the connection to the gateway. */
export interface Api {
  /** Rejects with an `ApiError` for any answer but success, and with `signal.reason`. Never waits for a rate limit. */
  call(call: ApiCall, signal: AbortSignal): Promise<ApiAnswer>;
  /** Resolves when no call is under way. */
  settled(): Promise<void>;
}

/** Reads what a route names, as the bot. Rejects as `Api.call` does. */
export async function read<T>(
  api: Pick<Api, "call">,
  route: RouteLike,
  signal: AbortSignal,
  query?: Readonly<Record<string, string>>,
): Promise<T> {
  const search = query === undefined ? {} : { query: new URLSearchParams(query) };
  return (await api.call({ method: "GET", route, ...search }, signal)).data as T;
}

/** Calls that say something about an answer, and nothing of it. */
const SIGNS = /\/(typing|reactions\/.*)$/;

export interface ApiOptions extends Pick<DiscordAdapterOptions, "token" | "apiUrl" | "processes" | "waits" | "now"> {
  /** Discord does not know the token any more. */
  onUnauthorized(): void;
}

export function createApi({ token, apiUrl, onUnauthorized, now, processes, waits }: ApiOptions): Api {
  const answers = new WeakMap<ResponseLike, ApiAnswer>();
  const rest = createRest(token, apiUrl, answers);
  const guard = createGuard(now, processes, waits);
  const globalLimit = createGlobalLimit(undefined, processes);
  const underWay = createUnderWay();
  /** Discord's refusal of the token, kept: a bot that goes on calling with a refused token is shut out. */
  let unauthorized: ApiError | undefined;

  async function make({ method, route, isBot = true, ...content }: ApiCall, signal: AbortSignal): Promise<ApiAnswer> {
    // A write may be several calls, and its process may have stood still between them.
    await checkFences();
    signal.throwIfAborted();
    const place = route.replace(/\/messages\/[^/]+/, "/messages/:id");
    // Other processes are told of it by this name, which must hold no token.
    const what = `${method} ${isBot ? place : createHash("sha256").update(place).digest("base64url")}`;
    const guarded = { what, hasFiles: content.files !== undefined, isBot };
    if (isBot && unauthorized !== undefined) throw unauthorized;
    guard.check(guarded);
    // Calls that answer an interaction do not count. https://docs.discord.com/developers/topics/rate-limits
    if (isBot) globalLimit.take(method === "GET" || SIGNS.test(route));
    try {
      const request = { method: method as never, fullRoute: route, auth: isBot, signal, ...content };
      return answers.get(await rest.queueRequest(request)) ?? { data: undefined };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (error instanceof RateLimitError) throw toGlobalLimit(error);
      if (error instanceof ApiError) {
        guard.note(guarded, error);
        if (error.status === 401 && isBot && !error.isForeign) {
          unauthorized = error;
          onUnauthorized();
        }
      }
      throw error;
    }
  }

  return {
    call: (call, signal) => underWay.hold(make(call, signal)),
    settled: underWay.settled,
  };
}

/**
 * The library's REST client. Answers are read before it judges them, because its limiter takes every counter for a fixed
 * window, and sleeps or refuses where the pacer knows better; its retries have no back-off; its errors carry bodies and
 * tokens.
 */
function createRest(token: string, apiUrl: string | undefined, answers: WeakMap<ResponseLike, ApiAnswer>): REST {
  const rest = new REST({
    ...(apiUrl !== undefined && { api: apiUrl }),
    version: "10",
    async makeRequest(url, init) {
      const response = await DefaultRestOptions.makeRequest(url, init);
      answers.set(response, await readAnswer(init.method ?? "GET", response));
      for (const name of LIMIT_HEADERS) response.headers.delete(name);
      return response;
    },
    retries: 0,
    timeout: CALL_TIMEOUT_MS,
    rejectOnRateLimit: () => true,
  });
  return rest.setToken(token);
}

/** The only limit that is left to the library. */
function toGlobalLimit({ retryAfter }: RateLimitError): ApiError {
  const message = "The bot makes more calls per second than Discord allows it over all channels.";
  return new ApiError(message, { status: 429, code: 0, retryAfterMs: Math.max(0, retryAfter) });
}

const MAX_WORDS = 200;
/** A proxy in front of Discord that gives no `retry-after` shuts out for a while. */
const SHUT_OUT_MS = 60_000;

/** Discord's answer to a call that it carried out. */
export interface ApiAnswer extends Receipt {
  data: unknown;
}

/** Reads an answer to its end. Throws an `ApiError` for anything but success. */
async function readAnswer(method: string, response: ResponseLike): Promise<ApiAnswer> {
  const data = readJson(await response.text());
  if (!response.ok) throw toApiError(method, response, data);
  return { data, ...readReceipt(response.headers) };
}

/** Ignores the content type: Discord answers with JSON or with nothing. */
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
  const words = typeof body["message"] === "string" ? `: ${truncate(body["message"], MAX_WORDS)}` : "";
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
