/** Keeps what waits apart from everything else on the same Redis, BullMQ's own keys included. */
const ROOT = "palaver:queue:";

export const KEYS = {
  /** Keys of events that were accepted. */
  claim: (eventKey: string) => `${ROOT}claim:${eventKey}`,
  /** The events of a lane, oldest first, until they are done. */
  lane: (laneId: string) => `${ROOT}lane:${laneId}`,
  /** The token of a lane's holder, living or dead. */
  owner: (laneId: string) => `${ROOT}owner:${laneId}`,
  /** The process that works on a lane, for as long as it is known to live. */
  lease: (laneId: string) => `${ROOT}lease:${laneId}`,
  attempts: (laneId: string) => `${ROOT}attempts:${laneId}`,
  /** The conversation of a message that waits. */
  message: (messageId: string) => `${ROOT}message:${messageId}`,
  /** Lanes in which something waits, by when their bells were rung. */
  lanes: `${ROOT}lanes`,
  waiting: `${ROOT}waiting`,
  /** Beginnings without an end of the work on each event, by its key. */
  begun: `${ROOT}begun`,
  /** The last token that was given out. */
  token: `${ROOT}token`,
  /** Lanes that have a place, and those that wait for one. */
  active: `${ROOT}active`,
  held: `${ROOT}held`,
  rounds: `${ROOT}rounds`,
  /** Raised by every change of the places. */
  version: `${ROOT}version`,
  /** Processes that work, with their places, by when they count as gone. */
  workers: `${ROOT}workers`,
  /** Listened to by a process for as long as it lives: when it is killed, Redis knows at once. */
  alive: (workerId: string) => `${ROOT}alive:${workerId}`,
  /** The calls that were made against a limit of a platform, and the channel on which each is told. */
  calls: (budgetKey: string) => `${ROOT}calls:${budgetKey}`,
  /** Held by the sweeping process. */
  sweep: `${ROOT}sweep`,
  /** Events that were given up, newest first. */
  kept: `${ROOT}kept`,
  /** On which everything that is accepted is told. */
  channel: `${ROOT}told`,
} as const;
