import { createHash } from "node:crypto";

/** This number must never change, because processes with different versions share the work. */
export const PARTITIONS = 64;

/**
 * A conversation's partition, counted from 0. All conversations in one place, such as a Slack workspace or a Discord
 * channel, share a partition, because their replies share a rate limit. Any process can compute it without the adapter.
 */
export function partitionOf(conversationId: string): number {
  const [place = ""] = /^[^:~]*(?::[^:~]*)?/.exec(conversationId) ?? [];
  return createHash("sha256").update(place).digest().readUInt32BE() % PARTITIONS;
}

const ROOT = "palaver:parts:";

/** The keys and channels in Redis that belong to partitions. */
export const PART_KEYS = {
  /** A hash with the time of each process's last heartbeat, its slots and its running conversations. */
  members: `${ROOT}members`,
  /**
   * The epoch and the process that own a partition, as `epoch:process`, or `epoch:` while no process does. It is the
   * fence.
   */
  owner: (partition: number | "") => `${ROOT}owner:${partition}`,
  /** One counter for all partitions, so that no owner's value repeats. */
  epoch: `${ROOT}epoch`,
  /** A stream with a partition's accepted but unsettled events. */
  journal: (partition: number) => `${ROOT}journal:${partition}`,
  /** A hash with the number of starts without an end, for each entry. */
  begun: (partition: number) => `${ROOT}begun:${partition}`,
  /** The previous owner's value while it finishes the work on this lane. It fences that work. */
  kept: (laneId: string) => `${ROOT}kept:${laneId}`,
  /** A stream. Each entry ends a process's blocking read. */
  wake: (processId: string) => `${ROOT}wake:${processId}`,
  /** A channel. A process is subscribed to it while it lives, so Redis knows at once when the process is killed. */
  alive: (processId: string) => `${ROOT}alive:${processId}`,
  /** A channel. A message means that partitions became free or a process left. */
  changed: `${ROOT}changed`,
  /** A channel for the ids of lanes whose mark is gone. */
  freed: `${ROOT}freed`,
} as const;
