import { createHash } from "node:crypto";

/** Must never change, because processes of different versions share the work. */
export const PARTITIONS = 64;

/**
 * A partition from 0. All conversations of a Slack workspace or a Discord channel share one, because their replies
 * share a rate limit.
 */
export function partitionOf(conversationId: string): number {
  const [place = ""] = /^[^:~]*(?::[^:~]*)?/.exec(conversationId) ?? [];
  return createHash("sha256").update(place).digest().readUInt32BE() % PARTITIONS;
}

const ROOT = "palaver:parts:";

export const PART_KEYS = {
  /** A hash: each process's last heartbeat, slots and running conversations. */
  members: `${ROOT}members`,
  /** The owner as `epoch:process`, or `epoch:` without one. This is the fence. */
  owner: (partition: number | "") => `${ROOT}owner:${partition}`,
  /** One counter for all partitions, so that no value of an owner repeats. */
  epoch: `${ROOT}epoch`,
  /** A stream: accepted events that are not settled. */
  journal: (partition: number) => `${ROOT}journal:${partition}`,
  /** A hash: for each entry the number of starts without an end. */
  begun: (partition: number) => `${ROOT}begun:${partition}`,
  /** The former owner's value while it works on this lane. It fences that work. */
  kept: (laneId: string) => `${ROOT}kept:${laneId}`,
  /** A stream. An entry ends the process's blocking read. */
  wake: (processId: string) => `${ROOT}wake:${processId}`,
  /** A channel that a living process subscribes to, so Redis notices its death at once. */
  alive: (processId: string) => `${ROOT}alive:${processId}`,
  /** A channel: partitions became free, or a process left. */
  changed: `${ROOT}changed`,
  /** A channel: ids of lanes that are no longer kept. */
  freed: `${ROOT}freed`,
} as const;
