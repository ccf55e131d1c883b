import type { InboundEvent } from "../port/events.ts";
import type { Right } from "../port/right.ts";
import type { ErasedPerson } from "./event-lane.ts";
import type { GivenUp } from "./given-up.ts";

/** An accepted event. It is stored until its work is done. */
export interface Entry {
  /** Ids grow within a partition, see `isBefore`. */
  readonly id: string;
  readonly event: InboundEvent;
  readonly partition: number;
  /** The number of starts that did not end, because the process died. */
  deaths: number;
}

/** The queue's side of a journal. */
export interface JournalReader {
  /** This process now owns the partition. Its entries follow. */
  onTaken(partition: number): void;
  /** Receives entries in order. `isAtEnd`: no older entries follow, so work can start. */
  onEntries(partition: number, entries: readonly Entry[], isAtEnd: boolean): void;
  /** This process gives the partition away. Returns at once the lanes whose work finishes here. */
  onGiving(partition: number): readonly string[];
  /** Another process took the partition. */
  onLost(partition: number): void;
  /** Another process took over a lane of a partition that this process gave away. */
  onLaneLost(laneId: string): void;
  /** Another process has ended its work on a lane. */
  onLaneFreed(laneId: string): void;
  /** Resolves to the dropped entries when this process no longer works for the person. */
  onErase(partition: number, person: ErasedPerson): Promise<readonly Entry[]>;
  /** The number of running lanes, in one partition or in all. */
  running(partition?: number): number;
  /** A process called `tell`. */
  onTold(event: InboundEvent): void;
}

/** The right to work on a lane, until `settle` or `uncount`. */
export interface LaneRight {
  /** Has no fence if no other process can take over. */
  readonly held: Right;
  /** Removes finished entries. Rejects with a `FencedError` if another process took over. */
  settle(done: readonly Entry[]): Promise<void>;
  /** The work was aborted, which is not a death. */
  uncount(): Promise<void>;
  /** After progress, earlier deaths no longer count. */
  countAnew(): Promise<void>;
  /** The queue gives the work up, so it must not write any more. */
  revoke(): void;
}

/**
 * `kept`: the previous owner still works on the lane. `fenced`: another process owns the partition. `gone`: these
 * entries were erased or settled.
 */
export type Start =
  | { type: "started"; right: LaneRight; deaths: number }
  | { type: "gone"; entries: readonly Entry[] }
  | { type: "kept" | "fenced" };

/**
 * Stores accepted events in order within each lane, and passes those of owned partitions to the queue. The interface is
 * narrow, so that a log with one consumer per partition (NATS JetStream, Kafka) could implement it.
 */
export interface Journal {
  /** Claims the event's key for 48 h. Returns false if it was claimed before, or if the message was already deleted. */
  accept(event: InboundEvent): Promise<boolean>;
  open(reader: JournalReader): void;
  /** With `works`, this process owns partitions. Otherwise it only accepts events. */
  start(works: boolean): Promise<void>;
  /** Starts work on a lane's first entries, and counts the start. */
  begin(lane: LaneName, entries: readonly Entry[]): Promise<Start>;
  conversationOf(messageId: string): Promise<string | undefined>;
  /** Reaches every connected process at once. The event is not stored. */
  tell(event: InboundEvent): Promise<void>;
  /** Erases a person's entries. Resolves when no process works for the person. */
  forget(person: ErasedPerson): Promise<void>;
  /** Erases entries regardless of running work. Resolves to their events. */
  erase(isErased: (event: InboundEvent) => boolean): Promise<InboundEvent[]>;
  noteGivenUp(givenUp: GivenUp): Promise<void>;
  /** The number of slots for conversations, with those that other processes leave free. */
  places(own: number): number;
  /** Includes this process. */
  processes(): number;
  /** Gives all partitions away. Running work continues. */
  handOver(): Promise<void>;
  close(): Promise<void>;
}

export interface LaneName {
  readonly id: string;
  readonly partition: number;
}

/** True if an entry is older than another one of its partition. Ids are "17", or "time-number" as in Redis. */
export function isBefore(one: string, other: string): boolean {
  const [oneMs = 0, oneNumber = 0] = one.split("-").map(Number);
  const [otherMs = 0, otherNumber = 0] = other.split("-").map(Number);
  return oneMs === otherMs ? oneNumber < otherNumber : oneMs < otherMs;
}
