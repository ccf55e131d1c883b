import { setTimeout as sleep } from "node:timers/promises";
import { hasBegun, type PictureTurn } from "../turn/record.ts";
import type { TurnRecords } from "../turn/records.ts";
import type { RunningTurns } from "../turn/running.ts";

/** If someone presses an image's button, the press waits at most this long until the record contains the image. */
const SETTLE_MS = 180_000;
const LOOK_MS = 250;

export interface FindPicture {
  /** Resolves to a running turn's record, which has all changes, or else to the stored record. */
  find(id: string): Promise<PictureTurn | undefined>;
  /**
   * Like `find`, but first waits until this image is finished, because its button is visible before the record is
   * updated.
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
