import type { Logger } from "pino";
import type { References } from "../media/reference.ts";
import type { ActionEvent } from "../port/events.ts";
import { isSamePerson } from "../port/identity.ts";
import { readPictureId } from "../port/ids.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import { isRefusal } from "../reply/platform-call.ts";
import { isSettled, type PictureTurn } from "../turn/record.ts";
import type { TurnRecords } from "../turn/records.ts";
import { canManage, NOT_YOURS, toPressedReply } from "../turn/rights.ts";
import type { RunningPictures } from "../turn/running.ts";
import type { FindPicture } from "./find-picture.ts";
import { type FindRefusal, TOO_OLD } from "./new-turn.ts";
import type { PictureRuns } from "./picture-run.ts";

export const NOT_SET_UP =
  "I can't create images: no image model is configured. The operator can set `IMAGE_MODEL` to one that the AI service offers.";
const HAS_ENDED = "This has already ended.";

/**
 * Handles the buttons under images, for the asker and for moderators. A method that did nothing resolves to a sentence
 * that says why.
 */
export interface PictureButtons {
  /** Handles Retry: creates the failed images of a turn again. */
  drawAgain(running: RunningPictures, event: ActionEvent, signal: AbortSignal): Promise<string | undefined>;
  /** Handles Delete. */
  remove(event: ActionEvent, signal: AbortSignal): Promise<string | undefined>;
  /** Handles a Stop that arrived after the turn had ended. */
  stopLate(event: ActionEvent): Promise<string>;
}

export interface PictureButtonsDeps extends FindPicture {
  records: Pick<TurnRecords, "savePicture">;
  runs: Pick<PictureRuns, "run" | "writeHistory">;
  findRefusal: FindRefusal;
  /** Erases the links to deleted images, so that the gateway can no longer fetch them. */
  references: Pick<References, "erase">;
  /** The default image model. Undefined: the bot creates no images. */
  model: string | undefined;
  /** Resolves to undefined if the record is missing or the store is unavailable. */
  load(id: string): Promise<PictureTurn | undefined>;
  sinkOf: SinkOf;
  log: Logger;
}

export function createPictureButtons(deps: PictureButtonsDeps): PictureButtons {
  const { records, runs, findRefusal, references, model, load, find, findSettled, sinkOf, log } = deps;

  async function findOwn(
    event: ActionEvent,
    signal: AbortSignal,
  ): Promise<{ turn: PictureTurn; part: number } | string> {
    const id = readPictureId(event.turnId);
    const turn = id && (await findSettled(id.turnId, id.part, signal));
    if (id === undefined || turn === undefined) return TOO_OLD;
    return canManage(event, turn) ? { turn, part: id.part } : NOT_YOURS;
  }

  async function drawAgain(
    running: RunningPictures,
    event: ActionEvent,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    if (model === undefined) return NOT_SET_UP;
    const found = await findOwn(event, signal);
    if (typeof found === "string") return found;
    const { turn } = found;
    if (turn.phase === "final") {
      const { author } = event;
      // A new image needs the permission of both the asker and the person who pressed the button.
      const byPresser = await findRefusal(turn, author);
      const refusal = byPresser ?? (isSamePerson(author, turn) ? undefined : await findRefusal(turn));
      if (refusal !== undefined) return refusal;
      if (turn.parts.every(isSettled)) return undefined;
      turn.parts = turn.parts.map((part) => (isSettled(part) ? part : { state: "pending" }));
      Object.assign(turn, { phase: "posted", attempts: 0 });
    }
    running.open(turn);
    await runs.run(running, turn, signal, true);
    return undefined;
  }

  async function remove(event: ActionEvent, signal: AbortSignal): Promise<string | undefined> {
    const found = await findOwn(event, signal);
    if (typeof found === "string") return found;
    const { turn, part: number } = found;
    const part = turn.parts[number - 1];
    if (part?.state !== "done") return undefined;
    try {
      await sinkOf(toPressedReply(event, turn, 1)).remove(part.messageId, signal);
    } catch (err) {
      if (!isRefusal(err)) throw err;
      log.warn({ err, turnId: turn.id }, "an image could not be removed");
    }
    // Erase the file before the record forgets its name. If this fails, a retry can then repeat both steps.
    if (part.attachment !== undefined) await references.erase([part.attachment]);
    // Another press may have restarted the turn in the meantime.
    const current = (await find(turn.id)) ?? turn;
    current.parts[number - 1] = { state: "deleted" };
    await records.savePicture(current);
    await runs.writeHistory(current);
    return undefined;
  }

  async function stopLate(event: ActionEvent): Promise<string> {
    const turn = await load(readPictureId(event.turnId)?.turnId ?? "");
    return turn === undefined || canManage(event, turn) ? HAS_ENDED : NOT_YOURS;
  }

  return { drawAgain, remove, stopLate };
}
