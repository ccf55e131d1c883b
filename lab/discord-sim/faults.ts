import type { RouteTable } from "./routes.ts";

export interface Fault {
  /** The response's status. `reset` resets the connection, and `silence` never responds. */
  status: number | "reset" | "silence";
  /** Discord's error code and message in the response. */
  code?: number;
  message?: string;
  /** Only with status 429. */
  retryAfterMs?: number;
  scope?: "user" | "shared" | "global";
  /** `before` (default): Discord does not execute the call. `after`: Discord executes it, but the response is lost. */
  when?: "before" | "after";
  /** Number of calls that fail; default: 1. */
  times?: number;
  /** Number of calls that succeed before the first failure. */
  skip?: number;
}

export interface Faults {
  /**
   * Makes the next calls to a route such as `"PATCH /channels/:channel/messages/:message"` fail. `"*"` stands for every
   * route.
   */
  failNext(route: string, fault: Fault): void;
  /** Delays the next `times` calls to a route, or all calls until `clear`. */
  slow(route: string, ms: number, options?: { times?: number }): void;
  clear(): void;
}

export interface FaultQueue extends Faults {
  /** Returns the fault for this call, and counts the call against the fault's `times`. */
  take(route: string): { fault: Fault | undefined; slowMs: number };
}

interface Planned<T> {
  route: string;
  skip: number;
  left: number;
  what: T;
}

export function createFaults(routes: RouteTable): FaultQueue {
  let failures: Planned<Fault>[] = [];
  let delays: Planned<number>[] = [];

  const known = routes.map(({ route }) => route);

  function check(route: string): string {
    // Throw, because a fault for a misspelled route would never happen and its test would prove nothing.
    if (route !== "*" && !known.includes(route))
      throw new Error(`No route "${route}"; there are:\n${known.join("\n")}`);
    return route;
  }

  return {
    failNext(route, fault) {
      failures.push({ route: check(route), skip: fault.skip ?? 0, left: fault.times ?? 1, what: fault });
    },
    slow(route, ms, { times = Infinity } = {}) {
      delays.push({ route: check(route), skip: 0, left: times, what: ms });
    },
    clear() {
      failures = [];
      delays = [];
    },
    take: (route) => ({ fault: takeFrom(failures, route), slowMs: takeFrom(delays, route) ?? 0 }),
  };
}

function takeFrom<T>(planned: readonly Planned<T>[], route: string): T | undefined {
  const next = planned.find((plan) => plan.left > 0 && (plan.route === "*" || plan.route === route));
  if (next === undefined) return undefined;
  if (next.skip > 0) {
    next.skip -= 1;
    return undefined;
  }
  next.left -= 1;
  return next.what;
}
