import type { Logger } from "pino";
import { NEVER } from "../concurrency/deadlines.ts";
import type { ActionEvent, CommandEvent, InboundEvent } from "../port/events.ts";
import { readPictureId, toConversationOf, toTurnId } from "../port/ids.ts";
import { asResumed } from "../port/right.ts";
import { hasBegun, type PictureTurn, toFreshRecord } from "../turn/record.ts";
import { createRunningPictures, type RunningPictures, type RunningTurns } from "../turn/running.ts";
import { createPictureButtons, NOT_SET_UP, type PictureButtonsDeps } from "./buttons.ts";
import { type NewTurn, type NewTurnDeps, readTurn } from "./new-turn.ts";
import { createPictureRuns, type PictureRunsDeps } from "./picture-run.ts";
import { createPicturesWithin, type PicturesWithin } from "./pictures-within.ts";
import { createWaitingMessages, type WaitingDeps, type WaitingMessages } from "./waiting.ts";

const GIVEN_UP = "I tried several times and couldn't finish this. Please ask again.";
const NOT_HERE = "I can't write here, so I didn't create an image. Add me to this channel, then ask again.";

/** Creates each event's images once, and resumes after a crash. A method rejects if its event must be retried. */
export interface Imagine extends PicturesWithin, Pick<WaitingMessages, "erase" | "dismissAll"> {
  /**
   * Handles a command or a button press if `isWanted` resolves to true. If the batch contains a Stop, the turn ends.
   * Creates nothing for events that the queue gave up on.
   */
  work(batch: PictureBatch, isWanted: Promise<boolean>, signal: AbortSignal): Promise<Worked>;
  /** Call this if an event must wait because other images are being created. */
  onWaiting(event: InboundEvent): void;
}

export interface PictureBatch {
  events: readonly InboundEvent[];
  isGivenUp?: true;
}

export interface Worked {
  done: readonly InboundEvent[];
  /** Tells the person why nothing was done. Undefined: the work was done. */
  refusal?: string | undefined;
}

export interface ImagineDeps
  extends PictureRunsDeps,
    WaitingDeps,
    Omit<NewTurnDeps, "model">,
    Omit<PictureButtonsDeps, "runs" | "load"> {
  records: PictureButtonsDeps["records"] & PictureRunsDeps["records"] & WaitingDeps["records"];
  references: PictureButtonsDeps["references"] & PictureRunsDeps["references"];
  turns: RunningTurns;
  log: Logger;
}

type PictureEvent = CommandEvent | ActionEvent;

export function createImagine(deps: ImagineDeps): Imagine {
  const { records, turns, model, log } = deps;
  const waiting = createWaitingMessages(deps);
  const runs = createPictureRuns(deps);
  const { inTurn } = deps.line;

  /**
   * Resolves to undefined also if the store is unavailable, because creating images must not wait for it. The platform
   * still has the visible images.
   */
  async function load(id: string): Promise<PictureTurn | undefined> {
    try {
      return await records.loadPicture(id);
    } catch (err) {
      log.error({ err, turnId: id }, "the record of an image could not be read");
      return undefined;
    }
  }

  const begin = createBegin(deps, waiting, load);
  const buttons = createPictureButtons({ ...deps, runs, load });

  async function drawNew(
    running: RunningPictures,
    event: PictureEvent,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const begun = await begin(running.id, event, signal);
    if ("refusal" in begun) {
      await waiting.dismiss(running.id);
      return begun.refusal;
    }
    const { turn } = begun;
    if (turn.phase === "final") return undefined;
    running.open(turn);
    // Another process may still be posting the message, so look for the message first.
    const right = turn.isPosting ? asResumed(deps.right) : deps.right;
    const isShown = await createPictureRuns({ ...deps, right }).run(running, turn, signal, false);
    return isShown ? undefined : NOT_HERE;
  }

  /** Ends a waiting turn immediately. The turn has already ended when the queue hands it out. */
  async function stopWaiting(running: RunningPictures, event: PictureEvent): Promise<void> {
    if (turns.findWaiting(running.id) !== running) return;
    await turns.whileRunning(running, () =>
      inTurn(running.id, async () => {
        await waiting.announced(running.id);
        const turn = await load(running.id);
        // The record may have been erased, or another process may run the turn. That process receives the Stop too.
        if (turn !== undefined && !hasBegun(turn)) await drawNew(running, event, NEVER);
      }),
    );
  }

  return {
    ...createPicturesWithin({ ...deps, load }),
    async work({ events, isGivenUp }, isWanted, signal) {
      const [first] = events;
      if (first?.kind !== "command" && first?.kind !== "action") return { done: events };
      if (first.kind === "action" && first.action === "delete") {
        return { done: events, refusal: await buttons.remove(first, signal) };
      }
      if (first.kind === "action" && first.action === "stop")
        return { done: events, refusal: await buttons.stopLate(first) };
      const isRetry = first.kind === "action" && first.action === "retry";
      const id = isRetry ? (readPictureId(first.turnId)?.turnId ?? "") : toTurnId(first.key);
      const running = turns.findWaiting(id) ?? createRunningPictures(id);
      running.retries(isRetry);
      for (const event of events.slice(1)) running.notice(event);
      if (isGivenUp) running.giveUp();
      return turns.whileRunning(running, () =>
        // The queue can hand out a waiting turn at the moment when `stopWaiting` ends it.
        inTurn(id, async () => {
          const turn = isGivenUp && !isRetry ? await load(id) : undefined;
          const isUnknown = isGivenUp && !isRetry && (turn === undefined || !hasBegun(turn));
          if (isUnknown || !(await isWanted)) {
            await waiting.dismiss(id);
            return { done: events, refusal: isUnknown ? GIVEN_UP : undefined };
          }
          const drawn = await (isRetry ? buttons.drawAgain(running, first, signal) : drawNew(running, first, signal));
          return { done: [...new Set([...events, ...running.taken()])], refusal: drawn };
        }),
      );
    },

    onWaiting(event) {
      if (event.kind !== "command" && event.kind !== "action") return;
      const id = toTurnId(event.key);
      // A Retry already has a message, and a Stop needs none.
      const needsMessage = event.kind === "command" || (event.action !== "retry" && event.action !== "stop");
      if (model === undefined || !needsMessage || turns.findWaiting(id) !== undefined || turns.find(id)) return;
      const running = createRunningPictures(id);
      const fresh = toWaitingTurn(event);
      running.open(fresh);
      turns.wait(running);
      running.stop.addEventListener("abort", () => {
        stopWaiting(running, event).catch((err: unknown) => {
          log.warn({ err, turnId: id }, "waiting images could not be stopped immediately");
        });
      });
      waiting.announce(fresh);
    },

    erase: waiting.erase,
    dismissAll: waiting.dismissAll,
  };
}

/** Starts an event's turn, or continues the turn of an earlier attempt. */
function createBegin(deps: ImagineDeps, waiting: WaitingMessages, load: PictureButtonsDeps["load"]) {
  const { model } = deps;

  return async (id: string, event: PictureEvent, signal: AbortSignal): Promise<NewTurn> => {
    await waiting.announced(id);
    const known = await load(id);
    if (known !== undefined && hasBegun(known)) return { turn: known };
    const made = model === undefined ? { refusal: NOT_SET_UP } : await readTurn({ ...deps, model }, event, signal);
    if ("refusal" in made) return made;
    // Continues the message which says that the turn waits. Another process may have posted that message meanwhile.
    const waited = (await load(id)) ?? known;
    if (waited === undefined) return made;
    const { posted, removed, isPosting } = waited;
    return { turn: Object.assign(waited, made.turn, { posted, removed, isPosting }) };
  };
}

/** Returns a turn's record before its request is parsed. */
function toWaitingTurn(event: PictureEvent): PictureTurn {
  const { key, at, reply, author } = event;
  const place = { id: toTurnId(key), conversationId: toConversationOf(event), reply, author };
  return { ...toFreshRecord(place), at, prompt: "", model: "", isSpoiler: false, references: [], parts: [] };
}
