import type { InboundEvent } from "../../port/events.ts";
import { type Failures, NO_FAILURES } from "../attempts.ts";
import { laneOf } from "../event-lane.ts";

/** Events that are worked on one after another: those of one conversation, or of one picture. */
export interface Lane extends Failures {
  readonly id: string;
  readonly conversationId: string;
  /** Oldest first; what is being worked on stays until it is done. */
  waiting: InboundEvent[];
  state: "idle" | "ready" | "active" | "pausing";
  /** The events in it that are being worked on. */
  taken: readonly InboundEvent[];
  /** Events that are done and could not be taken off the disk yet. */
  done: readonly InboundEvent[];
  /** The events that are taken count as begun, and as the cause if the process dies now. */
  isCounted: boolean;
}

/** Orders the conversations that wait, in memory: each has one place in the line, however many events it has. */
export interface Lanes {
  add(event: InboundEvent): void;
  /** Activates the chosen lane among those in line, longest waiting first; without `choose`, the first. */
  next(choose?: (ready: readonly Lane[]) => Lane | undefined): Lane | undefined;
  /** These events are done; the lane goes to the end of the line while more waits in it. */
  finish(lane: Lane, done: readonly InboundEvent[]): void;
  /** Puts a lane back into the line. */
  resume(lane: Lane): void;
  /** Forgets waiting events and returns them, except those that are being worked on: their work finishes its own. */
  drop(isDropped: (event: InboundEvent) => boolean): InboundEvent[];
  waiting(): number;
  /** The conversation in which a message waits. */
  conversationOf(messageId: string): string | undefined;
}

export function createLanes(): Lanes {
  const lanes = new Map<string, Lane>();
  let ready: Lane[] = [];

  function resume(lane: Lane): void {
    lane.state = "ready";
    ready.push(lane);
  }

  return {
    add(event) {
      const { id } = laneOf(event);
      const lane = lanes.get(id) ?? createLane(id, event.conversationId);
      lanes.set(id, lane);
      lane.waiting.push(event);
      if (lane.state === "idle") resume(lane);
    },
    next(choose = ([first]) => first) {
      // Everything that waited in these was dropped.
      for (const { id } of ready.filter(isEmpty)) lanes.delete(id);
      ready = ready.filter((lane) => !isEmpty(lane));
      const lane = choose(ready);
      if (lane === undefined) return undefined;
      ready.splice(ready.indexOf(lane), 1);
      lane.state = "active";
      return lane;
    },
    finish(lane, done) {
      const gone = new Set(done);
      lane.waiting = lane.waiting.filter((event) => !gone.has(event));
      lane.taken = [];
      lane.done = [];
      Object.assign(lane, NO_FAILURES);
      if (lane.waiting.length > 0) resume(lane);
      else lanes.delete(lane.id);
    },
    resume,
    drop(isDropped) {
      const dropped: InboundEvent[] = [];
      for (const lane of lanes.values()) {
        const gone = lane.waiting.filter((event) => !lane.taken.includes(event) && isDropped(event));
        lane.waiting = lane.waiting.filter((event) => !gone.includes(event));
        dropped.push(...gone);
      }
      return dropped;
    },
    waiting() {
      let count = 0;
      for (const lane of lanes.values()) count += lane.waiting.length;
      return count;
    },
    conversationOf(messageId) {
      const isOf = (event: InboundEvent) => event.kind === "message" && event.messageId === messageId;
      return lanes.values().find(({ waiting }) => waiting.some(isOf))?.conversationId;
    },
  };
}

function isEmpty({ waiting }: Lane): boolean {
  return waiting.length === 0;
}

function createLane(id: string, conversationId: string): Lane {
  return { id, conversationId, waiting: [], taken: [], done: [], state: "idle", isCounted: false, ...NO_FAILURES };
}
