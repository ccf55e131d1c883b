import type { Clock } from "./clock.ts";

export interface LoggedRequest {
  readonly atMs: number;
  /** Method and pattern, or the path of an unknown route. */
  readonly route: string;
  readonly params: Readonly<Record<string, string>>;
  /** The host under which the caller reached this server. */
  readonly host: string;
  body: unknown;
  fileNames: readonly string[];
  /** Undefined while the call runs, and if the connection was reset. */
  status: number | undefined;
  /** Id of the message that a post created, even if the response was lost. */
  madeId: string | undefined;
  endedAtMs: number | undefined;
  /** The wait that a 429 requested. */
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
