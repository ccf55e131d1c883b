/** A fault of a call. Its fields take effect in this order. */
export interface Fault {
  /** Real time before Slack executes the call. */
  delayMs?: number;
  /** If true, Slack executes the call but its response is lost: the client sees a failure. */
  isDone?: boolean;
  /** With `isDone`, the response lacks these fields. */
  omits?: readonly string[];
  /** With `isDone`, the response contains this warning. */
  warning?: string;
  /** Real time between the call and its response. */
  answersLateMs?: number;
  /** The HTTP status of the response; by default 200 if there is an `error`. */
  status?: number;
  /** The `error` in a response with `ok: false`. */
  error?: string;
  /** With `error`, Slack's explanation. */
  words?: readonly string[];
  /** Whole seconds in `Retry-After`. The status is then 429. */
  retryAfterS?: number;
  /** If true, drops the connection instead of responding. */
  cutsConnection?: boolean;
  /** An HTML body instead of JSON. */
  html?: string;
}

/** A delay in real time: a constant, or a function that is called for each call. */
export type Delay = number | (() => number);

/** Requested faults by method; `*` stands for every method. */
export interface Faults {
  failNext(method: string, fault: Fault, times?: number): void;
  /** Delays every further call to a method; 0 ends the delay. */
  slow(method: string, delayMs: Delay): void;
  /** Removes and returns the fault for the next call to a method. */
  take(method: string): Fault | undefined;
}

export function createFaults(): Faults {
  const planned = new Map<string, Fault[]>();
  const delaysMs = new Map<string, Delay>();

  return {
    failNext(method, fault, times = 1) {
      planned.set(method, [...(planned.get(method) ?? []), ...Array.from({ length: times }, () => fault)]);
    },
    slow(method, delayMs) {
      delaysMs.set(method, delayMs);
    },
    take(method) {
      const fault = planned.get(method)?.shift() ?? planned.get("*")?.shift();
      const delay = delaysMs.get(method) ?? delaysMs.get("*") ?? 0;
      const delayMs = typeof delay === "function" ? delay() : delay;
      if (delayMs === 0) return fault;
      return { delayMs, ...fault };
    },
  };
}
