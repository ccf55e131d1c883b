import { setTimeout as sleep } from "node:timers/promises";
import { hasBegun, type PictureTurn } from "../turn/record.ts";
import type { TurnRecords } from "../turn/records.ts";
import type { RunningTurns } from "../turn/running.ts";

/** How long a picture's button waits for the picture's record. */
const SETTLE_MS = 180_000;
const LOOK_MS = 250;

export interface FindPicture {
  /**
   * Returns the running turn's record, because it has all changes. If the turn is not running, returns the stored
   * record.
   */
  find(id: string): Promise<PictureTurn | undefined>;
  /**
   * Like `find`, but waits until this picture is finished, because people can press before the record has the picture.
   */
  findSettled(id: string, number: number, signal: AbortSignal): Promise<PictureTurn | undefined>;
}

export function createFindPicture(
  records: Pick<TurnRecords, "loadPicture">,
  turns: Pick<RunningTurns, "find">,
  { settleMs, lookMs } = { settleMs: SETTLE_MS, lookMs: LOOK_MS },
): FindPicture {
  async function find(id: string): Promise<PictureTurn | undefined> {
    const running = turns.find(id);
    const record = running?.kind === "pictures" ? running.record : undefined;
    return record !== undefined && hasBegun(record) ? record : records.loadPicture(id);
  }

  return {
    find,
    async findSettled(id, number, signal) {
      for (let waitedMs = 0; ; waitedMs += lookMs) {
        const turn = await find(id);
        const isSettled = turn?.phase === "final" || turn?.parts[number - 1]?.state !== "pending";
        if (isSettled || waitedMs >= settleMs) return turn;
        await sleep(lookMs, undefined, { signal, ref: false }).catch(() => signal.throwIfAborted());
      }
    },
  };
}
