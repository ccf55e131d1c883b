import type { Clock } from "./clock.ts";

/** One of the bot's calls and its outcome. */
export interface LoggedRequest {
  readonly atMs: number;
  /** The method and the route's pattern. The path if no pattern matched. */
  readonly route: string;
  readonly params: Readonly<Record<string, string>>;
  /** The address at which the caller reached this server. */
  readonly host: string;
  /** The parsed body. */
  body: unknown;
  /** The files of a multipart body. */
  fileNames: readonly string[];
  /** Undefined while the call is running, and if the connection was reset. */
  status: number | undefined;
  /** The message that a post created, even if the response was lost. */
  madeId: string | undefined;
  endedAtMs: number | undefined;
  /** The wait that a 429 asked for. */
  retryAfterMs: number | undefined;
  /** True if a test requested this failure. */
  isInjected: boolean;
}

export interface RequestLog {
  readonly list: readonly LoggedRequest[];
  begin(route: string, params: Readonly<Record<string, string>>, host: string): LoggedRequest;
}

export function createRequestLog(clock: Clock): RequestLog {
  const list: LoggedRequest[] = [];
  return {
    list,
    begin(route, params, host) {
      const request: LoggedRequest = {
        atMs: clock.now(),
        route,
        params,
        host,
        body: undefined,
        fileNames: [],
        status: undefined,
        madeId: undefined,
        endedAtMs: undefined,
        retryAfterMs: undefined,
        isInjected: false,
      };
      list.push(request);
      return request;
    },
  };
}
