import { cut } from "../../concurrency/cut.ts";
import type { InboundEvent } from "../../port/events.ts";
import type { RedisLanes, Stored } from "./lanes.ts";

/**
 * The work on a lane in this process, and what is heard of it meanwhile. Goes through `read`, `choose`, `markCounted` and
 * `begin`, in this order.
 */
export interface Run {
  readonly controller: AbortController;
  /** The events being worked on; empty until they are chosen. */
  readonly taken: readonly InboundEvent[];
  /** An event came into the lane. Returns whether it is to be told now: it was not known, and work has begun. */
  hear(stored: Stored): boolean;
  /** Somebody is erased: work on events for which `isErased` is true is aborted, also when it is only about to begin. */
  erase(isErased: (event: InboundEvent) => boolean): void;
  /** The work counts as begun; `uncount` takes that back, once. */
  markCounted(): void;
  uncount(): Promise<void>;
  /** Its death has no meaning any more, and neither has what was counted. */
  progressed(): void;
  /** Stops waiting for the work to end: `abandoned` rejects. */
  abandon(): void;
  readonly abandoned: Promise<never>;
  /** Takes what was read from the lane, and then what of it is worked on. */
  read(waiting: readonly Stored[]): void;
  choose(taken: readonly InboundEvent[]): void;
  /** Work has begun. Returns what came between the reading of the lane and this moment. */
  begin(): InboundEvent[];
  /** These events as they lie in the lane, as far as they are known to. */
  find(events: readonly InboundEvent[]): Stored[];
}

export function createRun(lanes: Pick<RedisLanes, "uncount">): Run {
  const controller = new AbortController();
  const known = new Map<string, Stored>();
  const erasures: Array<(event: InboundEvent) => boolean> = [];
  const abandoned = Promise.withResolvers<never>();
  abandoned.promise.catch(() => {});
  let taken: readonly InboundEvent[] = [];
  let early: InboundEvent[] = [];
  let hasBegun = false;
  let isCounted = false;

  function add(stored: Stored): boolean {
    if (known.has(stored.event.key)) return false;
    known.set(stored.event.key, stored);
    return true;
  }

  return {
    controller,
    get taken() {
      return taken;
    },
    hear(stored) {
      if (!add(stored)) return false;
      if (!hasBegun) early.push(stored.event);
      return hasBegun;
    },
    erase(isErased) {
      erasures.push(isErased);
      if (taken.some(isErased)) cut(controller, "forgotten");
    },
    markCounted() {
      isCounted = true;
    },
    async uncount() {
      const [first] = taken;
      if (!isCounted || first === undefined) return;
      isCounted = false;
      await lanes.uncount(first.key);
    },
    progressed() {
      isCounted = false;
    },
    abandon: () => abandoned.reject(new Error("The work did not end in time.")),
    abandoned: abandoned.promise,
    read(waiting) {
      for (const stored of waiting) add(stored);
    },
    choose(chosen) {
      taken = chosen;
      if (taken.some((event) => erasures.some((isErased) => isErased(event)))) cut(controller, "forgotten");
    },
    begin() {
      hasBegun = true;
      const missed = early.filter(({ key }) => taken.every((event) => event.key !== key));
      early = [];
      return missed;
    },
    find: (events) => events.flatMap(({ key }) => known.get(key) ?? []),
  };
}
