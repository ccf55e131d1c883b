/** What goes wrong with a call, in the order in which it happens. */
export interface Fault {
  /** Real time before anything is done. */
  delayMs?: number;
  /** The call is carried out and its answer is lost: what a client cannot tell from a failure. */
  isDone?: boolean;
  /** With `isDone`: the answer comes, without these fields. */
  omits?: readonly string[];
  /** With `isDone`: the answer comes, with this warning. */
  warning?: string;
  /** Real time between what is done and its answer. */
  answersLateMs?: number;
  /** HTTP status with `body`; default 200 when there is an `error`. */
  status?: number;
  /** `error` of an answer with `ok: false`. */
  error?: string;
  /** With `error`: what Slack says about it in words. */
  words?: readonly string[];
  /** Whole seconds; makes it a 429. */
  retryAfterS?: number;
  /** Cuts the connection instead of answering. */
  cutsConnection?: boolean;
  /** Sent as HTML instead of JSON. */
  html?: string;
}

/** Real time, the same for all calls or another for each. */
export type Delay = number | (() => number);

/** Faults that were asked for, by method; `*` stands for every method. */
export interface Faults {
  failNext(method: string, fault: Fault, times?: number): void;
  /** Every call of a method waits this long, which may be asked anew for each; 0 ends that. */
  slow(method: string, delayMs: Delay): void;
  /** The fault of the next call of a method, which is then used up. */
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
