import type { InboundEvent } from "../adapter.ts";
import { toLaneId } from "./picture-lanes.ts";

/** What is worked on one after another: what waits in one conversation, or what a picture needs. */
export interface Lane {
  readonly id: string;
  readonly conversationId: string;
  /** Oldest first; what is being worked on stays until it is done. */
  waiting: InboundEvent[];
  state: "idle" | "ready" | "active" | "pausing";
  /** What of it is being worked on. */
  taken: readonly InboundEvent[];
  /** What is done and could not be taken off the disk yet. */
  done: readonly InboundEvent[];
  /** How often in a row its work has failed. */
  failures: number;
  /** How often of those the work itself was to blame, not a store that was away. */
  faults: number;
}

/** Which conversation comes next: each has one place in the line, however much waits in it. Kept in memory. */
export interface Lanes {
  add(event: InboundEvent): void;
  /** Takes, of those that may begin, the lane that has waited longest and marks it active; undefined when there is none. */
  next(mayBegin?: (lane: Lane) => boolean): Lane | undefined;
  /** These events are done; the lane goes to the end of the line while more waits in it. */
  finish(lane: Lane, done: readonly InboundEvent[]): void;
  /** Puts a lane back into the line. */
  resume(lane: Lane): void;
  /** Forgets waiting events, except those that are being worked on: their work finishes its own. */
  drop(isDropped: (event: InboundEvent) => boolean): void;
  waiting(): number;
  /** The conversation in which a message waits. */
  conversationOf(messageId: string): string | undefined;
}

export function createLanes(): Lanes {
  const lanes = new Map<string, Lane>();
  const ready: Lane[] = [];

  function resume(lane: Lane): void {
    lane.state = "ready";
    ready.push(lane);
  }

  return {
    add(event) {
      const id = toLaneId(event);
      const lane = lanes.get(id) ?? createLane(id, event.conversationId);
      lanes.set(id, lane);
      lane.waiting.push(event);
      if (lane.state === "idle") resume(lane);
    },
    next(mayBegin = () => true) {
      for (let index = 0; index < ready.length; ) {
        const lane = ready[index];
        if (lane === undefined) break;
        const isEmpty = lane.waiting.length === 0;
        if (!isEmpty && !mayBegin(lane)) {
          index += 1;
          continue;
        }
        ready.splice(index, 1);
        lane.state = "active";
        if (!isEmpty) return lane;
        // Everything that waited here was dropped.
        lanes.delete(lane.id);
      }
      return undefined;
    },
    finish(lane, done) {
      const gone = new Set(done);
      lane.waiting = lane.waiting.filter((event) => !gone.has(event));
      lane.taken = [];
      lane.done = [];
      lane.failures = 0;
      lane.faults = 0;
      if (lane.waiting.length > 0) resume(lane);
      else lanes.delete(lane.id);
    },
    resume,
    drop(isDropped) {
      for (const lane of lanes.values()) {
        lane.waiting = lane.waiting.filter((event) => lane.taken.includes(event) || !isDropped(event));
      }
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

function createLane(id: string, conversationId: string): Lane {
  return { id, conversationId, waiting: [], state: "idle", taken: [], done: [], failures: 0, faults: 0 };
}
