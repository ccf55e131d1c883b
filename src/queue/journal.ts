import type { InboundEvent } from "../port/events.ts";
import type { Right } from "../port/right.ts";
import type { ErasedPerson } from "./event-lane.ts";
import type { GivenUp } from "./given-up.ts";

/** An accepted event that is stored until its work is done. */
export interface Entry {
  /** Ids grow within a partition. See `isBefore`. */
  readonly id: string;
  readonly event: InboundEvent;
  readonly partition: number;
  /** How often a process died during this work, as the number of starts without an end. */
  deaths: number;
}

/** The engine's side of a journal. It learns which entries to work on, and which no longer belong to this process. */
export interface JournalReader {
  /** This process now owns the partition. The partition's entries follow, oldest first. */
  onTaken(partition: number): void;
  /**
   * Receives entries in order. `isAtEnd` is true if all older entries have been read, so work in this partition can
   * start.
   */
  onEntries(partition: number, entries: readonly Entry[], isAtEnd: boolean): void;
  /**
   * This process gives the partition to another one. Synchronously returns the lanes whose running work finishes here.
   */
  onGiving(partition: number): readonly string[];
  /** Another process took the partition. */
  onLost(partition: number): void;
  /** Another process took over a lane. The lane's work was finishing here after its partition was given away. */
  onLaneLost(laneId: string): void;
  /** Another process has ended its work on a lane. */
  onLaneFreed(laneId: string): void;
  /** A person is being erased. Resolves to the dropped entries when this process no longer works for that person. */
  onErase(partition: number, person: ErasedPerson): Promise<readonly Entry[]>;
  /** Lanes that are being worked on, in one partition or in all. */
  running(partition?: number): number;
  /** Some process called `tell`. */
  onTold(event: InboundEvent): void;
}

/** The right to work on one lane. It lasts from its start until `settle` or `uncount`. */
export interface LaneRight {
  /** The right to write for this work. It has no fence if no other process can take over. */
  readonly held: Right;
  /** Deletes finished entries. Rejects with a `FencedError` if another process took over. */
  settle(done: readonly Entry[]): Promise<void>;
  /** The work was aborted without a result. This does not count as a death of the process. */
  uncount(): Promise<void>;
  /** The work made progress, so earlier deaths no longer count. */
  countAnew(): Promise<void>;
  /** The queue no longer waits for this work. From now on, the work must not write. */
  revoke(): void;
}

/**
 * The result of a start. `kept`: the lane's previous process is still finishing its work. `fenced`: the partition
 * belongs to another process. `gone`: these entries were erased or settled meanwhile.
 */
export type Start =
  | { type: "started"; right: LaneRight; deaths: number }
  | { type: "gone"; entries: readonly Entry[] }
  | { type: "kept" | "fenced" };

/**
 * Stores accepted events, durably and in order within each lane, and passes those in the owned partitions to the
 * engine. The interface is deliberately narrow, so that a log with partitions and one consumer per partition (NATS
 * JetStream, Kafka) can implement it.
 */
export interface Journal {
  /**
   * Claims the event's key for 48 h and stores the event. Returns false if the key is already claimed, or if the
   * message was deleted before it arrived.
   */
  accept(event: InboundEvent): Promise<boolean>;
  /** Connects the engine. */
  open(reader: JournalReader): void;
  /** `works` is true if this process owns partitions. Otherwise it only accepts events. */
  start(works: boolean): Promise<void>;
  /** Starts work on a lane's first entries and counts the start, unless another process has the right to the lane. */
  begin(lane: LaneName, entries: readonly Entry[]): Promise<Start>;
  conversationOf(messageId: string): Promise<string | undefined>;
  /** Sends the event to every connected process at once. Does not store it. */
  tell(event: InboundEvent): Promise<void>;
  /** Erases a person's entries. Resolves when no process works on them any more. */
  forget(person: ErasedPerson): Promise<void>;
  /** Erases stored entries and resolves to their events. Does not interrupt running work. */
  erase(isErased: (event: InboundEvent) => boolean): Promise<InboundEvent[]>;
  noteGivenUp(givenUp: GivenUp): Promise<void>;
  /**
   * The number of conversations that this process can run in parallel, including slots that other processes leave free.
   */
  places(own: number): number;
  /** The number of processes that share the journal, including this one. */
  processes(): number;
  /** Gives all partitions away. Running work continues under its own right. */
  handOver(): Promise<void>;
  close(): Promise<void>;
}

export interface LaneName {
  readonly id: string;
  readonly partition: number;
}

/** True if an entry id is older than another one in the same partition. Ids are "17", or "time-number" as in Redis. */
export function isBefore(one: string, other: string): boolean {
  const [oneMs = 0, oneNumber = 0] = one.split("-").map(Number);
  const [otherMs = 0, otherNumber = 0] = other.split("-").map(Number);
  return oneMs === otherMs ? oneNumber < otherNumber : oneMs < otherMs;
}
