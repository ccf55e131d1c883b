import { postNotice } from "../commands/command.ts";
import { COMMAND_NAMES } from "../commands/commands.ts";
import { BoundedMap } from "../concurrency/bounded-map.ts";
import type { PictureBatch } from "../imagine/imagine.ts";
import { createRate } from "../people/feedback.ts";
import { type ActionEvent, asksAnew, type CommandEvent, type InboundEvent, isSpokenStop } from "../port/events.ts";
import { readPictureId, toTurnId } from "../port/ids.ts";
import type { Right } from "../port/right.ts";
import { isDrawing } from "../queue/event-lane.ts";
import type { Worker } from "../queue/queue.ts";
import { isOfSchedule } from "../schedules/acts.ts";
import { carryOut, giveUpRun, isScheduled, type RunDeps } from "../schedules/run.ts";
import { isStoreOutage } from "../store/outage.ts";
import type { Batch } from "../turn/answers.ts";
import { takeBatch } from "../turn/questions.ts";
import { type Acceptance, createAccept } from "./accept.ts";
import { onChanged } from "./changes.ts";
import type { BotDeps, BotParts } from "./deps.ts";
import { createGate, hasStarted, type Refusal } from "./gate.ts";
import { createNotifyOutage, type NotifyOutage } from "./outage-notice.ts";
import { answerMessages } from "./questions.ts";
import { createReplies, type Replies } from "./replies.ts";

const STORE_IS_AWAY = "My storage is unavailable. I'll do this as soon as it's back; no need to ask again.";

const GIVEN_UP = "I tried several times and couldn't finish this. Please try again.";

const MAX_REFUSED = 1_000;

export interface Bot extends Acceptance {
  worker: Worker;
}

/**
 * Keys of stops that the bot refused on arrival. The map is bounded: if another process handles such a stop, this
 * process never removes its key.
 */
type Refused = BoundedMap<string, true>;

/**
 * Turns each inbound event into a turn, a command, a change of the history, or nothing. `own` has the services for
 * events that no worker handles yet. `under` creates the services for one piece of work, which write only while this
 * process owns the work.
 */
export function createBot(own: BotDeps, under: (right: Right) => BotDeps): Bot {
  const notifyOutage = createNotifyOutage(own);
  const acceptance = createAccept({ ...own, notifyOutage });
  const refused: Refused = new BoundedMap(MAX_REFUSED);
  const { refuseAtOnce } = createReplies(own);
  /** Work that no other process can take over uses the process's own services. */
  function partsUnder(right: Right): BotParts {
    const deps = right === own.right ? own : under(right);
    return { ...deps, gate: createGate(deps), accept: acceptance.accept };
  }

  const worker: Worker = {
    take: takeBatch,
    work: withOutageNotice(
      (batch, { signal, right }) => createWork(partsUnder(right), refused)(batch, signal),
      notifyOutage,
    ),
    giveUp(events, { signal, right }) {
      const parts = partsUnder(right);
      return giveUp(parts, createReplies(parts), events, signal);
    },
    onAccepted(event) {
      const refusal = own.turns.interrupt(event);
      if (refusal !== undefined && (event.kind === "action" || isSpokenStop(event))) {
        refused.set(event.key, true);
        void refuseAtOnce(event, refusal);
      }
      if (own.turns.isAnswering(event.conversationId)) showWaiting(own, event);
    },
    onWaiting(event) {
      if (isDrawing(event)) own.imagine.onWaiting(event);
      else showWaiting(own, event);
    },
  };
  return { ...acceptance, worker };
}

function createWork(deps: BotParts, refused: Refused) {
  const { afterTheEnd, explain, commands } = deps;
  const rate = createRate(deps);
  const replies = createReplies(deps);
  const { reply, notify } = replies;

  async function onCommand(event: CommandEvent, signal: AbortSignal): Promise<void> {
    // On arrival, the bot already told the author that they cannot stop this answer.
    if (refused.delete(event.key)) return;
    const run = commands.get(event.name);
    if (run !== undefined) return reply(event, signal, (sink, signal) => run(event, sink, signal));
    const known = COMMAND_NAMES.map((name) => `/${name}`).join(", ");
    await notify(event, `I don't know that command. Try one of these: ${known}.`, signal);
  }

  async function onAction(
    event: ActionEvent,
    batch: InboundEvent[],
    signal: AbortSignal,
  ): Promise<readonly InboundEvent[]> {
    if (event.action === "stop") {
      await notify(event, await afterTheEnd.stop(event, signal), signal);
      return batch;
    }
    if (event.action === "good" || event.action === "bad") {
      await rate(event, event.action);
      return batch;
    }
    if (event.action === "continue") {
      await goOn(deps, replies, event, signal);
      return batch;
    }
    if (isOfSchedule(event)) {
      await reply(event, signal, async (sink, signal) => {
        const shown = await deps.planner.press(event, signal);
        const isPrivate = event.reply.isDirect !== true;
        if (shown !== undefined)
          await deps.planner.show(shown, { sink, nonce: `${event.key}:notice`, isPrivate }, signal);
      });
      return batch;
    }
    if (event.action === "explain") {
      await reply(event, signal, async (sink, signal) => {
        await postNotice(sink, event, await explain(event, sink.limits), signal);
      });
      return batch;
    }
    if (event.action === "show" || event.action === "delete") {
      const refusal = await (event.action === "show" ? afterTheEnd.show(event, signal) : afterTheEnd.remove(event));
      if (refusal !== undefined) await notify(event, refusal, signal);
      return batch;
    }
    return answerAgain(deps, replies, event, { events: batch }, signal);
  }

  async function work(batch: InboundEvent[], signal: AbortSignal): Promise<readonly InboundEvent[]> {
    const [first] = batch;
    if (first?.kind === "action" && refused.delete(first.key)) return batch;
    const drawing = toPictureEvent(first);
    if (drawing !== undefined) return drawPictures(deps, replies, drawing, { events: batch }, signal);
    if (isScheduled(first)) return carryOut(first, toRunDeps(deps, {}, signal), signal);
    // `answerMessages` checks permissions for messages later. Edits need no permission to change the history.
    if (first?.kind === "command" || first?.kind === "action") {
      const refusing = deps.gate.findRefusal(first);
      const refusal = refusing && (await refusing);
      if (refusal !== undefined) {
        await deps.gate.tell(first, refusal, signal);
        return batch;
      }
    }
    switch (first?.kind) {
      case "message":
        return answerMessages(deps, { events: batch }, signal);
      case "action":
        return onAction(first, batch, signal);
      case "command":
        await onCommand(first, signal);
        break;
      case "edited":
      case "deleted":
        await onChanged(deps, first, signal);
        break;
      case undefined:
    }
    return batch;
  }

  return work;
}

function toRunDeps(deps: BotParts, batch: Pick<Batch, "isGivenUp">, signal: AbortSignal): RunDeps {
  return {
    ...deps,
    hasStarted: (event) => hasStarted(event, deps),
    answer: (event) => answerMessages(deps, { events: [event], ...batch }, signal),
    outcomeOf: async ({ key }) => (await deps.records.load(toTurnId(key)))?.ends?.at(-1),
  };
}

/** Marks a question as waiting. A message between people gets no mark. */
function showWaiting({ waiting, history }: BotDeps, event: InboundEvent): void {
  if (event.kind !== "message" || event.addressed === "other" || event.scheduled !== undefined) return;
  if (event.addressed === "bot") return waiting.show(event);
  const isFollowed = history.isFollowed(event.conversationId, event.at).catch(() => false);
  void isFollowed.then((isOurs) => isOurs && waiting.show(event));
}

/**
 * Wraps `call`: if the store is unavailable, the author of a command or a button press gets a notice, and the queue
 * retries the event.
 */
function withOutageNotice(call: Worker["work"], notifyOutage: NotifyOutage): Worker["work"] {
  return async (batch, work) => {
    const [first] = batch;
    try {
      return await call(batch, work);
    } catch (error) {
      const isWaitedFor = first?.kind === "command" || first?.kind === "action";
      if (isWaitedFor && isStoreOutage(error)) await notifyOutage(first, STORE_IS_AWAY);
      throw error;
    }
  };
}

/** Tells the asker once that the bot gave up. An edit or a deletion gets no notice, because no one waits for it. */
async function giveUp(
  deps: BotParts,
  replies: Replies,
  events: InboundEvent[],
  signal: AbortSignal,
): Promise<readonly InboundEvent[]> {
  const [first] = events;
  deps.metrics.givenUp();
  if (isScheduled(first)) return giveUpRun(first, toRunDeps(deps, { isGivenUp: true }, signal), signal);
  if (first?.kind === "message") return answerMessages(deps, { events, isGivenUp: true }, signal);
  if (first?.kind !== "command" && first?.kind !== "action") return events;
  if (isDrawing(first)) return drawPictures(deps, replies, first, { events, isGivenUp: true }, signal);
  if (asksAnew(first)) {
    return answerAgain(deps, replies, first, { events, isGivenUp: true }, signal);
  }
  await replies.notify(first, GIVEN_UP, signal);
  return events;
}

function toPictureEvent(event: InboundEvent | undefined): CommandEvent | ActionEvent | undefined {
  if (event?.kind === "command") return isDrawing(event) ? event : undefined;
  return event?.kind === "action" && readPictureId(event.turnId) !== undefined ? event : undefined;
}

async function drawPictures(
  { gate, imagine }: BotParts,
  { notify }: Replies,
  event: CommandEvent | ActionEvent,
  batch: PictureBatch,
  signal: AbortSignal,
): Promise<readonly InboundEvent[]> {
  let denied: Refusal | undefined;
  // Do not await this here: the turn must be registered first, or a Stop during the check would miss it.
  async function isWanted(): Promise<boolean> {
    denied = batch.isGivenUp ? undefined : await gate.findRefusal(event);
    return denied === undefined;
  }
  const { done, refusal } = await imagine.work(batch, isWanted(), signal);
  if (denied !== undefined) await gate.tell(event, denied, signal);
  else if (refusal !== undefined) await notify(event, refusal, signal);
  return done;
}

async function answerAgain(
  { answers }: BotParts,
  { notify }: Replies,
  event: ActionEvent,
  batch: Omit<Batch, "messages">,
  signal: AbortSignal,
): Promise<readonly InboundEvent[]> {
  const { done, refusal } = await answers.retry(event, batch, signal);
  if (refusal !== undefined) await notify(event, refusal, signal);
  return done;
}

async function goOn(
  { afterTheEnd, accept }: BotParts,
  { notify }: Replies,
  event: ActionEvent,
  signal: AbortSignal,
): Promise<void> {
  const question = await afterTheEnd.toContinuation(event);
  if (typeof question === "string") return notify(event, question, signal);
  await accept(question);
  await afterTheEnd.continued(event, signal);
}
