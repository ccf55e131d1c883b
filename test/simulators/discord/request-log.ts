import type { Clock } from "./clock.ts";

/** One call of the bot and what became of it. */
export interface LoggedRequest {
  readonly atMs: number;
  /** Method and pattern; the pattern is the path when nothing matched. */
  readonly route: string;
  readonly params: Readonly<Record<string, string>>;
  /** The parsed body. */
  body: unknown;
  /** Of a multipart body. */
  fileNames: readonly string[];
  /** Undefined while it is being worked on, and when the connection was cut. */
  status: number | undefined;
  endedAtMs: number | undefined;
  /** A test asked for this failure. */
  isInjected: boolean;
}

export interface RequestLog {
  readonly list: readonly LoggedRequest[];
  begin(route: string, params: Readonly<Record<string, string>>): LoggedRequest;
}

export function createRequestLog(clock: Clock): RequestLog {
  const list: LoggedRequest[] = [];
  return {
    list,
    begin(route, params) {
      const request: LoggedRequest = {
        atMs: clock.now(),
        route,
        params,
        body: undefined,
        fileNames: [],
        status: undefined,
        endedAtMs: undefined,
        isInjected: false,
      };
      list.push(request);
      return request;
    },
  };
}
