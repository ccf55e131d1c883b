import { createHash } from "node:crypto";

/** This number must never change, because processes of different versions share the work. */
export const PARTITIONS = 64;

/**
 * Returns the partition of a conversation, counted from 0. All conversations of a Slack workspace or a Discord channel
 * have the same partition, because their replies share a rate limit.
 */
export function partitionOf(conversationId: string): number {
  const [place = ""] = /^[^:~]*(?::[^:~]*)?/.exec(conversationId) ?? [];
  return createHash("sha256").update(place).digest().readUInt32BE() % PARTITIONS;
}

const ROOT = "palaver:parts:";

export const PART_KEYS = {
  /** A hash that maps each process to the time of its last heartbeat, its slots and its running conversations. */
  members: `${ROOT}members`,
  /**
   * A partition's owner as `epoch:process`, or `epoch:` while it has no owner. This value fences the owner's writes.
   */
  owner: (partition: number | "") => `${ROOT}owner:${partition}`,
  /** One counter for all partitions, so that every owner's value is unique. */
  epoch: `${ROOT}epoch`,
  /** A stream of a partition's accepted events, until they are settled. */
  journal: (partition: number) => `${ROOT}journal:${partition}`,
  /** A hash that maps an entry to the number of its starts that have not ended. */
  begun: (partition: number) => `${ROOT}begun:${partition}`,
  /**
   * A lane's mark: the former owner's value, while that process still works on the lane. This value fences its writes.
   */
  kept: (laneId: string) => `${ROOT}kept:${laneId}`,
  /** A stream. A new entry ends the process's blocking read. */
  wake: (processId: string) => `${ROOT}wake:${processId}`,
  /** A pub/sub channel that a living process subscribes to, so that Redis notices its death at once. */
  alive: (processId: string) => `${ROOT}alive:${processId}`,
  /** A pub/sub channel. A message says that partitions became free or that a process left. */
  changed: `${ROOT}changed`,
  /** A pub/sub channel with the ids of lanes that a process no longer keeps. */
  freed: `${ROOT}freed`,
} as const;
