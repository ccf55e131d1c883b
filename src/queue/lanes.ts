import { type Failures, NO_FAILURES } from "./attempts.ts";
import { laneOf } from "./event-lane.ts";
import { type Entry, isBefore, type Journal, type LaneName } from "./journal.ts";

/** A journal, and the partitions of it that this process owns. A partition is `open` once its backlog has been read. */
export interface Source {
  readonly journal: Journal;
  readonly partitions: Map<number, "reading" | "open">;
}

/** The entries of one conversation or one image. Work on them runs one after another. */
export interface Lane extends Failures, LaneName {
  readonly source: Source;
  /** All unfinished entries, oldest first, including those in `taken`. */
  waiting: Entry[];
  state: "idle" | "ready" | "active" | "pausing";
  /** The entries that the running work handles. */
  taken: readonly Entry[];
}

/**
 * The lanes in memory. Lanes that can start wait in a line, where each lane has one place, however many entries it has.
 */
export interface Lanes {
  /** Adds an entry to its lane and returns the lane. Returns undefined if the lane already has the entry. */
  add(source: Source, entry: Entry): Lane | undefined;
  /** Activates the lane that `choose` returns. `choose` gets the lanes in line, the longest-waiting first. */
  next(choose: (ready: readonly Lane[]) => Lane | undefined): Lane | undefined;
  /** Removes finished entries from a lane. If the lane has more entries, it goes to the end of the line. */
  finish(lane: Lane, done: readonly Entry[]): void;
  resume(lane: Lane): void;
  remove(lane: Lane): void;
  has(lane: Lane): boolean;
  /** Removes matching entries and returns them. Keeps the entries of running work, because the work settles them. */
  drop(isDropped: (entry: Entry, lane: Lane) => boolean): Entry[];
  all(): Iterable<Lane>;
  waiting(): number;
}

export function createLanes(): Lanes {
  const lanes = new Map<string, Lane>();
  let ready: Lane[] = [];

  function resume(lane: Lane): void {
    lane.state = "ready";
    ready.push(lane);
  }

  function remove(lane: Lane): void {
    if (lanes.get(lane.id) === lane) lanes.delete(lane.id);
    ready = ready.filter((other) => other !== lane);
  }

  return {
    add(source, entry) {
      const { id } = laneOf(entry.event);
      const lane = lanes.get(id) ?? createLane(source, id, entry);
      lanes.set(id, lane);
      if (!insert(lane.waiting, entry)) return undefined;
      if (lane.state === "idle") resume(lane);
      return lane;
    },
    next(choose) {
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
      lane.waiting = lane.waiting.filter((entry) => !gone.has(entry));
      lane.taken = [];
      Object.assign(lane, NO_FAILURES);
      if (isEmpty(lane)) remove(lane);
      else resume(lane);
    },
    resume,
    remove,
    has: (lane) => lanes.get(lane.id) === lane,
    drop(isDropped) {
      const dropped: Entry[] = [];
      for (const lane of lanes.values()) {
        const gone = lane.waiting.filter((entry) => !lane.taken.includes(entry) && isDropped(entry, lane));
        if (gone.length > 0) lane.waiting = lane.waiting.filter((entry) => !gone.includes(entry));
        dropped.push(...gone);
      }
      return dropped;
    },
    all: () => lanes.values(),
    waiting() {
      let count = 0;
      for (const lane of lanes.values()) count += lane.waiting.length;
      return count;
    },
  };
}

/** Inserts the entry in order of ids, usually at the end. Returns false if the list already has the entry. */
function insert(entries: Entry[], entry: Entry): boolean {
  let at = entries.length;
  while (at > 0) {
    const { id = "" } = entries[at - 1] ?? {};
    if (id === entry.id) return false;
    if (isBefore(id, entry.id)) break;
    at -= 1;
  }
  entries.splice(at, 0, entry);
  return true;
}

function isEmpty({ waiting }: Pick<Lane, "waiting">): boolean {
  return waiting.length === 0;
}

function createLane(source: Source, id: string, { partition }: Entry): Lane {
  return { source, id, partition, waiting: [], taken: [], state: "idle", ...NO_FAILURES };
}
