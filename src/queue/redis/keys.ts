/**
 * Keeps what waits apart from everything else on the same Redis, BullMQ's own keys included. The texts of the keys stay as
 * they are, whatever the names are here: processes of several versions share them.
 */
const ROOT = "palaver:queue:";

export const KEYS = {
  /** Keys of events that were accepted. */
  claim: (eventKey: string) => `${ROOT}claim:${eventKey}`,
  /** The events of a lane, oldest first, until they are done. */
  lane: (laneId: string) => `${ROOT}lane:${laneId}`,
  /** The token of a lane's holder, living or dead. */
  owner: (laneId: string) => `${ROOT}owner:${laneId}`,
  /** The process that works on a lane, for as long as it is known to live; only a token where Redis cannot see that. */
  lease: (laneId: string) => `${ROOT}lease:${laneId}`,
  /** How the work on the head of a lane has failed, as `Failures`; absent: it has not. */
  failures: (laneId: string) => `${ROOT}attempts:${laneId}`,
  /** The conversation of a message that waits. */
  message: (messageId: string) => `${ROOT}message:${messageId}`,
  /** Lanes in which something waits, by when they were last looked at: as the first event came in, or by the sweep. */
  lanes: `${ROOT}lanes`,
  /** The number of events in all lanes. */
  waiting: `${ROOT}waiting`,
  /** Beginnings without an end of the work on each event, by its key. */
  begun: `${ROOT}begun`,
  /** The last token that was given out. */
  token: `${ROOT}token`,
  /** Lanes that have a place, and those that wait for one. */
  active: `${ROOT}active`,
  queued: `${ROOT}held`,
  /** The round in which each person's next work gets its place: `Rounds` of `admission.ts`. */
  rounds: `${ROOT}rounds`,
  /** Raised by every change of the places. */
  version: `${ROOT}version`,
  /** Processes that work, with their places, by when they count as gone. */
  workers: `${ROOT}workers`,
  /** Listened to by a process for as long as it lives: when it is killed, Redis knows at once. */
  alive: (workerId: string) => `${ROOT}alive:${workerId}`,
  /** The calls that were made against a limit of a platform, and the channel on which each is told. */
  calls: (budgetKey: string) => `${ROOT}calls:${budgetKey}`,
  /** Set by whoever sweeps, and not taken away: until it expires, nobody sweeps. */
  sweep: `${ROOT}sweep`,
  /** Events that were given up, newest first. */
  givenUp: `${ROOT}kept`,
  /** The channel on which every accepted event is published. */
  channel: `${ROOT}told`,
} as const;
