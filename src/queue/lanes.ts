import { type Failures, NO_FAILURES } from "./attempts.ts";
import { laneOf } from "./event-lane.ts";
import { type Entry, isBefore, type Journal, type LaneName } from "./journal.ts";

/** A journal and those of its partitions that this process owns. A partition is in `open` once its backlog is read. */
export interface Source {
  readonly journal: Journal;
  readonly partitions: Map<number, "reading" | "open">;
}

/** Entries that are handled one after another, because they belong to one conversation or to one image. */
export interface Lane extends Failures, LaneName {
  /** The source of the lane's entries. */
  readonly source: Source;
  readonly conversationId: string;
  /** Oldest first. Entries that are being worked on stay until they are done. */
  waiting: Entry[];
  state: "idle" | "ready" | "active" | "pausing";
  /** The entries that are being worked on. */
  taken: readonly Entry[];
}

/** Keeps the waiting lanes in order in memory. Each lane has one place in the line, however many entries it has. */
export interface Lanes {
  /** Undefined if the entry is already known. */
  add(source: Source, entry: Entry): Lane | undefined;
  /** Activates one of the lanes in line. The chooser gets them with the longest waiting first. */
  next(choose: (ready: readonly Lane[]) => Lane | undefined): Lane | undefined;
  /** Removes finished entries. If more entries wait in the lane, it goes to the end of the line. */
  finish(lane: Lane, done: readonly Entry[]): void;
  /** Puts a lane back into the line. */
  resume(lane: Lane): void;
  /** Forgets a lane with all its entries. */
  remove(lane: Lane): void;
  has(lane: Lane): boolean;
  /** Removes and returns waiting entries. Leaves those that are being worked on, because their work settles them. */
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
      // All their entries were dropped.
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

/**
 * Usually appends. An entry that is read again or fills a gap goes before others. Returns false if the entry is already
 * there.
 */
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

function createLane(source: Source, id: string, { event, partition }: Entry): Lane {
  const { conversationId } = event;
  return { source, id, partition, conversationId, waiting: [], taken: [], state: "idle", ...NO_FAILURES };
}
