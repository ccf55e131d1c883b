/** A fault of a call. The fields take effect in this order. */
export interface Fault {
  /** Real time before Slack executes the call. */
  delayMs?: number;
  /** Slack executes the call but its response is lost, so the client cannot distinguish it from a failed call. */
  isDone?: boolean;
  /** With `isDone`: the response lacks these fields. */
  omits?: readonly string[];
  /** With `isDone`: the response contains this warning. */
  warning?: string;
  /** Real time between the call and its response. */
  answersLateMs?: number;
  /** The HTTP status, with `body`. If there is an `error`, the default is 200. */
  status?: number;
  /** The `error` in a response with `ok: false`. */
  error?: string;
  /** With `error`: Slack's explanation. */
  words?: readonly string[];
  /** Whole seconds; the status is then 429. */
  retryAfterS?: number;
  /** Drops the connection instead of sending a response. */
  cutsConnection?: boolean;
  /** The body of the response, as HTML instead of JSON. */
  html?: string;
}

/** A delay in real time: a constant, or a function that is called for each call. */
export type Delay = number | (() => number);

/** Requested faults by method. `*` means every method. */
export interface Faults {
  failNext(method: string, fault: Fault, times?: number): void;
  /** From now on, delays every call to a method. 0 ends the delay. */
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
