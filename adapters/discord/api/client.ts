import { createHash } from "node:crypto";
import { APIVersion, DefaultUserAgent, RouteBases, type RouteLike } from "discord.js";
import { FormData, fetch } from "undici";
import { runWithin } from "../../../src/concurrency/deadlines.ts";
import { retry } from "../../../src/concurrency/retry.ts";
import { createUnderWay } from "../../../src/concurrency/under-way.ts";
import type { OutboundFile, Receipt } from "../../../src/port/sink.ts";
import type { DiscordAdapterOptions } from "../options.ts";
import { type Answered, ApiError, toNetworkError, toRefusal, waitOf } from "./error.ts";
import { createGlobalLimit, createGuard } from "./guard.ts";

/** Timeout for a call, including the upload of its files. */
const CALL_TIMEOUT_MS = 60_000;

export interface ApiCall {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  route: RouteLike;
  body?: unknown;
  /** The body refers to these files by their index in this list. */
  files?: ApiFile[];
  query?: URLSearchParams;
  /** False if the URL contains an interaction's token, so that the call needs no bot token. */
  isBot?: boolean;
}

type ApiFile = Pick<OutboundFile, "name" | "contentType" | "bytes">;

export interface Api {
  /** Rejects with an `ApiError` unless the call succeeds, or with `signal.reason`. Never waits for a rate limit. */
  call(call: ApiCall, signal: AbortSignal): Promise<ApiAnswer>;
  settled(): Promise<void>;
}

/** Reads a route as the bot. Rejects in the same cases as `Api.call`. */
export async function read<T>(
  api: Pick<Api, "call">,
  route: RouteLike,
  signal: AbortSignal,
  query?: Readonly<Record<string, string>>,
): Promise<T> {
  const search = query === undefined ? {} : { query: new URLSearchParams(query) };
  return (await api.call({ method: "GET", route, ...search }, signal)).data as T;
}

/** `readPatiently` waits at most this many times in a row, and only for rate limits up to `LONGEST_WAIT_MS`. */
const MAX_WAITS = 5;
export const LONGEST_WAIT_MS = 10_000;

/** Like `read`, but waits for rate limits and retries until the signal aborts. */
export function readPatiently<T>(
  api: Pick<Api, "call">,
  route: RouteLike,
  signal: AbortSignal,
  query?: Readonly<Record<string, string>>,
): Promise<T> {
  const mayPass = (error: unknown) => (waitOf(error) ?? Infinity) <= LONGEST_WAIT_MS;
  const options = { pausesMs: Array<number>(MAX_WAITS).fill(0), mayPass, askedMs: waitOf, isIdle: true };
  return retry(() => read<T>(api, route, signal, query), options, signal);
}

/** Matches calls that only show activity, such as typing, and write no part of an answer. */
const SIGNS = /\/(typing|reactions\/.*)$/;

export interface ApiOptions extends Pick<DiscordAdapterOptions, "token" | "apiUrl" | "processes" | "now"> {
  onUnauthorized(): void;
}

export function createApi({ token, apiUrl, onUnauthorized, now, processes }: ApiOptions): Api {
  const base = apiUrl === undefined ? RouteBases.api : `${apiUrl}/v${APIVersion}`;
  const guard = createGuard(now, processes);
  const globalLimit = createGlobalLimit(undefined, processes);
  const underWay = createUnderWay();
  /** Set once Discord refuses the token. The bot then makes no further calls, because Discord would block it. */
  let unauthorized: ApiError | undefined;

  async function make(call: ApiCall, signal: AbortSignal): Promise<ApiAnswer> {
    const { method, route, isBot = true, files } = call;
    signal.throwIfAborted();
    // Discord has one counter for the calls about all messages in a channel, and one for all members of a server.
    const place = route.replace(/\/(messages|members)\/[^/]+/, "/$1/:id");
    // Other processes share the counter under this name, so the name must contain no token.
    const what = `${method} ${isBot ? place : createHash("sha256").update(place).digest("base64url")}`;
    const guarded = { what, hasFiles: files !== undefined, isBot };
    if (isBot && unauthorized !== undefined) throw unauthorized;
    guard.check(guarded);
    // Calls that respond to an interaction do not count. https://docs.discord.com/developers/topics/rate-limits
    if (isBot) globalLimit.take(method === "GET" || SIGNS.test(route));
    try {
      const given = isBot ? token : undefined;
      const answer = await runWithin(CALL_TIMEOUT_MS, (bound) => send(base, given, call, bound), signal);
      // Delays further reads until the counter resets, because the pacer plans only writes.
      if (method === "GET" && answer.budget?.remaining === 0) guard.hold(guarded, answer.budget.resetAfterMs);
      return answer;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const refusal = error instanceof ApiError ? error : toNetworkError(method, error);
      guard.note(guarded, refusal);
      if (refusal.status === 401 && isBot && !refusal.isForeign) {
        unauthorized = refusal;
        onUnauthorized();
      }
      throw refusal;
    }
  }

  return {
    call: (call, signal) => underWay.hold(make(call, signal)),
    settled: underWay.settled,
  };
}

export interface ApiAnswer extends Receipt {
  data: unknown;
}

/**
 * Makes a call once. Throws an `ApiError` unless the call succeeds. The library's client is not used: it treats every
 * counter as a fixed window, waits or refuses although the pacer knows better, and puts bodies and tokens into its
 * errors.
 */
async function send(
  base: string,
  token: string | undefined,
  { method, route, query, body, files }: ApiCall,
  signal: AbortSignal,
): Promise<ApiAnswer> {
  const isJson = body !== undefined && files === undefined;
  const response = await fetch(base + route + (query === undefined ? "" : `?${query.toString()}`), {
    method,
    headers: {
      "user-agent": DefaultUserAgent,
      ...(token !== undefined && { authorization: `Bot ${token}` }),
      ...(isJson && { "content-type": "application/json" }),
    },
    ...(files !== undefined && { body: toForm(body, files) }),
    ...(isJson && { body: JSON.stringify(body) }),
    // Discord never redirects, and the token must not reach another server.
    redirect: "manual",
    signal,
  });
  const { ok, status, headers } = response;
  const data = readJson(await response.text());
  if (!ok) throw toRefusal(method, { status, headers, data });
  return { data, ...readReceipt(headers) };
}

function toForm(body: unknown, files: readonly ApiFile[]): FormData {
  const form = new FormData();
  form.append("payload_json", JSON.stringify(body));
  for (const [index, { name, contentType, bytes }] of files.entries()) {
    form.append(`files[${index}]`, new Blob([Buffer.from(bytes)], { type: contentType }), name);
  }
  return form;
}

/** Ignores the content type, because Discord responds with JSON or with an empty body. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readReceipt(headers: Answered["headers"]): Receipt {
  const readHeader = (name: string) => Number(headers.get(`x-ratelimit-${name}`) ?? Number.NaN);
  const [limit, remaining] = [readHeader("limit"), readHeader("remaining")];
  const budget = { limit, remaining, resetAfterMs: readHeader("reset-after") * 1_000 };
  return Object.values(budget).every(Number.isFinite) ? { budget } : {};
}
