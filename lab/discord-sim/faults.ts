import type { RouteTable } from "./routes.ts";

/** How a call goes wrong. */
export interface Fault {
  /** The answer's status; `reset` cuts the connection, `silence` never answers. */
  status: number | "reset" | "silence";
  /** Discord's error code and words in the answer. */
  code?: number;
  message?: string;
  /** With 429. */
  retryAfterMs?: number;
  scope?: "user" | "shared" | "global";
  /** `before` (default): nothing is carried out. `after`: it is carried out and the answer is lost. */
  when?: "before" | "after";
  /** How many calls; 1 when it is not said. */
  times?: number;
  /** Calls that go through before it begins. */
  skip?: number;
}

export interface Faults {
  /** The next calls of a route go wrong, `"PATCH /channels/:channel/messages/:message"`; `"*"` is every route. */
  failNext(route: string, fault: Fault): void;
  /** Calls of a route take this much longer, until `clear` or for `times` calls. */
  slow(route: string, ms: number, options?: { times?: number }): void;
  clear(): void;
}

export interface FaultQueue extends Faults {
  /** What happens to this call; each fault is used up by the calls it is taken for. */
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
    // A fault for a misspelt route would never happen, and its test would pass for nothing.
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
