import type { InboundEvent } from "../port/events.ts";
import type { Right } from "../port/right.ts";
import type { ErasedPerson } from "./event-lane.ts";
import type { GivenUp } from "./given-up.ts";

/** An accepted event, which the journal stores until the work for it is done. */
export interface Entry {
  /** Later entries in a partition have larger ids. Compare ids with `isBefore`. */
  readonly id: string;
  readonly event: InboundEvent;
  readonly partition: number;
  /** How many processes died during the work on this entry. */
  deaths: number;
}

/** The methods by which a journal reports to the queue. */
export interface JournalReader {
  /** This process now owns the partition. The partition's entries follow. */
  onTaken(partition: number): void;
  /**
   * Receives a partition's entries in order. `isAtEnd` is true if no older entries are left to read, so work can start.
   */
  onEntries(partition: number, entries: readonly Entry[], isAtEnd: boolean): void;
  /**
   * This process gives the partition away. Synchronously returns the ids of the lanes whose running work finishes here.
   */
  onGiving(partition: number): readonly string[];
  /** Another process took the partition from this one. */
  onLost(partition: number): void;
  /** Another process took over a lane that this process kept after giving its partition away. */
  onLaneLost(laneId: string): void;
  /** Another process, which had kept the lane, has ended its work on it. The lane can now start here. */
  onLaneFreed(laneId: string): void;
  /**
   * Drops a person's waiting entries and aborts the person's work. Resolves to the dropped entries when the work has
   * ended.
   */
  onErase(partition: number, person: ErasedPerson): Promise<readonly Entry[]>;
  /** The number of lanes with running work, in one partition or in all. */
  running(partition?: number): number;
  /** Some process, possibly this one, passed the event to `tell`. */
  onTold(event: InboundEvent): void;
}

/** The right to work on a lane. It lasts until `settle` or `uncount`. */
export interface LaneRight {
  /** The right that the work needs to write. It has no fence if no other process can take the lane over. */
  readonly held: Right;
  /** Removes finished entries from the journal. Rejects with a `FencedError` if another process took the lane over. */
  settle(done: readonly Entry[]): Promise<void>;
  /** Takes back the start of aborted work, so that it does not count as a death. */
  uncount(): Promise<void>;
  /** Forgets earlier deaths, because the work made progress. */
  countAnew(): Promise<void>;
  /** Forbids the work to write, because the queue no longer waits for it. */
  revoke(): void;
}

/**
 * The result of `begin`. `kept`: the partition's previous owner still works on the lane. `fenced`: another process owns
 * the partition. `gone`: these entries were already erased or settled.
 */
export type Start =
  | { type: "started"; right: LaneRight; deaths: number }
  | { type: "gone"; entries: readonly Entry[] }
  | { type: "kept" | "fenced" };

/**
 * Stores accepted events in order within each lane, and passes the events of owned partitions to the queue. The
 * interface is narrow, so that a log with one consumer per partition (NATS JetStream, Kafka) could implement it.
 */
export interface Journal {
  /**
   * Stores the event and claims its key for 48 h. Returns false if the key was claimed before or the message was
   * deleted.
   */
  accept(event: InboundEvent): Promise<boolean>;
  open(reader: JournalReader): void;
  /** If `works` is true, this process takes partitions and gets their entries. Otherwise it only accepts events. */
  start(works: boolean): Promise<void>;
  /**
   * Starts work on the first entries of a lane and counts the start, unless another process has the right to the lane.
   */
  begin(lane: LaneName, entries: readonly Entry[]): Promise<Start>;
  conversationOf(messageId: string): Promise<string | undefined>;
  /** Sends the event to every connected process at once, without storing it. */
  tell(event: InboundEvent): Promise<void>;
  /** Erases a person's entries. Resolves when no process works for that person. */
  forget(person: ErasedPerson): Promise<void>;
  /** Erases matching entries without interrupting their running work. Resolves to the erased events. */
  erase(isErased: (event: InboundEvent) => boolean): Promise<InboundEvent[]>;
  noteGivenUp(givenUp: GivenUp): Promise<void>;
  /**
   * How many conversations this process can handle at once: its `own` slots, or more if other processes leave some
   * free.
   */
  places(own: number): number;
  /** The number of processes that share the work, including this one. */
  processes(): number;
  /** Gives all partitions of this process away. Running work continues here. */
  handOver(): Promise<void>;
  close(): Promise<void>;
}

export interface LaneName {
  readonly id: string;
  readonly partition: number;
}

/**
 * Compares the ids of two entries in one partition. Returns true if the first entry is older. An id is a number ("17"),
 * or "time-number" in Redis.
 */
export function isBefore(one: string, other: string): boolean {
  const [oneMs = 0, oneNumber = 0] = one.split("-").map(Number);
  const [otherMs = 0, otherNumber = 0] = other.split("-").map(Number);
  return oneMs === otherMs ? oneNumber < otherNumber : oneMs < otherMs;
}
