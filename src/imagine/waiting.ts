import type { Logger } from "pino";
import { BoundedMap } from "../concurrency/bounded-map.ts";
import { NEVER } from "../concurrency/deadlines.ts";
import { createKeyedQueue, type KeyedQueue } from "../concurrency/keyed-queue.ts";
import { PATIENT_PAUSES_MS, retry } from "../concurrency/retry.ts";
import type { Adapter } from "../port/adapter.ts";
import type { ActionEvent } from "../port/events.ts";
import { toNonce, toPictureId } from "../port/ids.ts";
import { asResumed, type Right } from "../port/right.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import type { Belonging, Owner } from "../store/owned.ts";
import { removePosted } from "../turn/posted-answer.ts";
import { hasBegun, type PictureTurn } from "../turn/record.ts";
import type { TurnRecords } from "../turn/records.ts";
import { toWaiting } from "./wording.ts";

const MAX_ANNOUNCED = 1_000;

/** State that all image turns of this process share. */
export interface PictureLine {
  /** Waiting messages that this process is posting, by turn. */
  announcements: BoundedMap<string, Promise<void>>;
  inTurn: KeyedQueue["run"];
}

export function createPictureLine(): PictureLine {
  return { announcements: new BoundedMap(MAX_ANNOUNCED), inTurn: createKeyedQueue().run };
}

/**
 * Posts a message which says that a turn waits. The record contains the message, so any process that later runs the
 * turn continues this message.
 */
export interface WaitingMessages {
  /** Posts the message, unless the turn already has a message or has started. Ignores failures. */
  announce(fresh: PictureTurn): void;
  /** Resolves as soon as this process is not posting the message. */
  announced(turnId: string): Promise<void>;
  /** Removes the message and the record of a turn that has not started. Rejects if that must be retried. */
  dismiss(turnId: string): Promise<void>;
  dismissAll(owner: Owner): Promise<void>;
  /**
   * Erases a person's or a conversation's image turns, and removes messages of waiting turns. Resolves to all erased
   * turns.
   */
  erase(of: Belonging): Promise<PictureTurn[]>;
}

export interface WaitingDeps {
  records: Pick<TurnRecords, "loadPicture" | "updatePicture" | "readPictures" | "erasePicture" | "erasePictures">;
  adapterOf(platform: string): Pick<Adapter, "sink">;
  sinkOf: SinkOf;
  right: Right;
  line: PictureLine;
  log: Logger;
}

export function createWaitingMessages({ records, adapterOf, sinkOf, right, line, log }: WaitingDeps): WaitingMessages {
  const { announcements } = line;

  /**
   * Resolves to true if two processes posted a message at the same time and the turn continues in the other message.
   */
  async function isLeftBehind(turnId: string, messageId: string): Promise<boolean> {
    const load = async () => {
      const turn = await records.loadPicture(turnId);
      const isPosting = turn !== undefined && turn.phase !== "final" && turn.posted.length === 0;
      if (isPosting) throw new Error("The turn has not posted its message yet.");
      return turn;
    };
    const turn = await retry(load, { pausesMs: PATIENT_PAUSES_MS }, NEVER);
    return turn?.posted.includes(messageId) !== true;
  }

  async function post(fresh: PictureTurn): Promise<void> {
    const { id, reply } = fresh;
    // Store the record first. Then the process that runs the turn knows, even after a crash, that a message may exist.
    const stored = await records.updatePicture(id, (known) => known ?? fresh);
    if (stored === undefined || hasBegun(stored) || stored.posted.length > 0) return;
    const sink = sinkOf(reply, adapterOf(reply.platform).sink(reply, stored === fresh ? right : asResumed(right)));
    const { id: messageId } = await sink.post(toWaiting(fresh), toNonce(stored), NEVER);
    const noted = await records.updatePicture(id, (known) =>
      known === undefined || hasBegun(known) ? undefined : { ...known, posted: [messageId], isPosting: false },
    );
    if (noted === undefined && (await isLeftBehind(id, messageId))) await sinkOf(reply).remove(messageId, NEVER);
  }

  async function dismiss(turn: PictureTurn): Promise<void> {
    if (hasBegun(turn)) return;
    await announcements.get(turn.id);
    await removePosted({ adapterOf, right: asResumed(right), log }, turn);
    await records.erasePicture(turn);
  }

  return {
    announce(fresh) {
      const { id } = fresh;
      const posting = post(fresh).catch((err: unknown) => {
        log.warn({ err, turnId: id }, "the message about waiting images could not be posted or removed");
      });
      announcements.set(
        id,
        posting.finally(() => announcements.delete(id)),
      );
    },
    announced: async (turnId) => announcements.get(turnId),
    async dismiss(turnId) {
      await announcements.get(turnId);
      const turn = await records.loadPicture(turnId);
      if (turn !== undefined) await dismiss(turn);
    },
    async dismissAll(owner) {
      for (const turn of await records.readPictures(owner)) await dismiss(turn);
    },
    async erase(of) {
      const erased = await records.erasePictures(of);
      for (const turn of erased) await dismiss(turn);
      return erased;
    },
  };
}

/** Returns a Stop in the asker's name. It tells every process that the request for these images was erased. */
export function toErasureStop(
  turnId: string,
  { conversationId, reply, author }: Pick<ActionEvent, "conversationId" | "reply" | "author">,
): ActionEvent {
  const stop = { kind: "action", action: "stop", turnId: toPictureId(turnId, 0) } as const;
  return { ...stop, key: `forget:stop:${turnId}`, conversationId, reply, author, at: Date.now() };
}
