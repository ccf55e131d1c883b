import { DefaultRestOptions, RateLimitError, type RawFile, REST, type ResponseLike, type RouteLike } from "discord.js";
import { type Answer, readAnswer } from "./answer.ts";
import { ApiError } from "./error.ts";
import { createGlobalLimit } from "./global-limit.ts";
import { createGuard } from "./guard.ts";

/** Longest a call may take, the upload of its files included. */
const CALL_TIMEOUT_MS = 60_000;
/** What the library's own limiter reads. */
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
  call(call: ApiCall, signal: AbortSignal): Promise<Answer>;
  /** Resolves when no call is under way. */
  settled(): Promise<void>;
}

export interface ApiOptions {
  token: string;
  /** Without the version; Discord's own when absent. */
  apiUrl?: string;
  /** Discord does not know the token any more. */
  onUnauthorized(): void;
  now(): number;
}

export function createApi({ token, apiUrl, onUnauthorized, now }: ApiOptions): Api {
  const answers = new WeakMap<ResponseLike, Answer>();
  const rest = createRest(token, apiUrl, answers);
  const guard = createGuard(now);
  const globalLimit = createGlobalLimit();
  const underWay = new Set<Promise<unknown>>();
  /** Said of the token once; whoever goes on calling with it is shut out. */
  let unauthorized: ApiError | undefined;

  async function make({ method, route, isBot = true, ...content }: ApiCall, signal: AbortSignal): Promise<Answer> {
    signal.throwIfAborted();
    // Who may not attach anything may still write.
    const withFiles = content.files === undefined ? "" : " with files";
    const what = `${method} ${route.replace(/\/messages\/[^/]+/, "/messages/:id")}${withFiles}`;
    if (isBot && unauthorized !== undefined) throw unauthorized;
    guard.check(what);
    // What answers an interaction does not count.
    if (isBot) globalLimit.take();
    try {
      const request = { method: method as never, fullRoute: route, auth: isBot, signal, ...content };
      return answers.get(await rest.queueRequest(request)) ?? { data: undefined };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (error instanceof RateLimitError) throw toGlobalLimit(error);
      if (error instanceof ApiError) {
        guard.note(what, error);
        if (error.status === 401 && isBot) {
          unauthorized = error;
          onUnauthorized();
        }
      }
      throw error;
    }
  }

  return {
    call(call, signal) {
      const making = make(call, signal);
      const settling = making.then(noop, noop).finally(() => underWay.delete(settling));
      underWay.add(settling);
      return making;
    },
    settled: async () => void (await Promise.all(underWay)),
  };
}

/**
 * The library's REST client, which answers are taken from before it judges them: its limiter takes every counter for
 * a fixed window, and sleeps or refuses where the pacer knows better; its retries have no back-off; its errors carry
 * bodies and tokens.
 */
function createRest(token: string, apiUrl: string | undefined, answers: WeakMap<ResponseLike, Answer>): REST {
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

function noop(): void {}
