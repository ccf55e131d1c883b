import type { Clock } from "./clock.ts";

/** One call of the bot and what became of it. */
export interface LoggedRequest {
  readonly atMs: number;
  /** Method and pattern; the pattern is the path when nothing matched. */
  readonly route: string;
  readonly params: Readonly<Record<string, string>>;
  /** The address at which the caller reached this server. */
  readonly host: string;
  /** The parsed body. */
  body: unknown;
  /** Of a multipart body. */
  fileNames: readonly string[];
  /** Undefined while it is being worked on, and when the connection was cut. */
  status: number | undefined;
  /** The message that a post made, also where its answer was lost. */
  madeId: string | undefined;
  endedAtMs: number | undefined;
  /** The wait that was told with a 429. */
  retryAfterMs: number | undefined;
  /** A test asked for this failure. */
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
