import { type Failures, NO_FAILURES } from "./attempts.ts";
import { laneOf } from "./event-lane.ts";
import { type Entry, isBefore, type Journal, type LaneName } from "./journal.ts";

/** A journal and its partitions that this process owns. A partition is `open` when its backlog is read. */
export interface Source {
  readonly journal: Journal;
  readonly partitions: Map<number, "reading" | "open">;
}

/** Entries of one conversation or one image, which run one after another. */
export interface Lane extends Failures, LaneName {
  readonly source: Source;
  /** Oldest first, including those in `taken`. */
  waiting: Entry[];
  state: "idle" | "ready" | "active" | "pausing";
  /** The entries of the running work. */
  taken: readonly Entry[];
}

/** The lanes in memory. Each has one place in the line, however many entries it has. */
export interface Lanes {
  /** Undefined if the entry is known. */
  add(source: Source, entry: Entry): Lane | undefined;
  /** Activates one of the lanes in line, which the chooser gets in order. */
  next(choose: (ready: readonly Lane[]) => Lane | undefined): Lane | undefined;
  /** Removes finished entries. A lane with more entries goes to the end of the line. */
  finish(lane: Lane, done: readonly Entry[]): void;
  resume(lane: Lane): void;
  remove(lane: Lane): void;
  has(lane: Lane): boolean;
  /** Removes and returns waiting entries, but none of running work, which settles its entries itself. */
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
      // Without entries there is nothing to start.
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

/** Inserts in order of ids; usually appends. Returns false if the entry is there. */
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
