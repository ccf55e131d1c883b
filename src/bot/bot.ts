import type { Logger } from "pino";
import { type Command, postNotice } from "../commands/command.ts";
import { NEVER, runWithin } from "../concurrency/deadlines.ts";
import type { History } from "../history/history.ts";
import type { Imagine } from "../imagine/imagine.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Rate } from "../people/feedback.ts";
import {
  type Accept,
  type ActionEvent,
  asksAnew,
  type CommandEvent,
  type DeletedEvent,
  type EditedEvent,
  type InboundEvent,
  isSpokenStop,
  type MessageEvent,
} from "../port/events.ts";
import { readPictureId } from "../port/ids.ts";
import type { ReplySink } from "../port/sink.ts";
import { isDrawing } from "../queue/event-lane.ts";
import type { Worker } from "../queue/queue.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import { isRefusal } from "../reply/platform-call.ts";
import { isStoreOutage } from "../store/outage.ts";
import type { Answers, Batch } from "../turn/answers.ts";
import { foldBatch, takeBatch } from "../turn/batch.ts";
import type { Explain } from "../turn/explain.ts";
import type { SecondThoughts } from "../turn/second-thoughts.ts";
import type { WaitingMarks } from "../turn/waiting-marks.ts";
import type { Gate, Refusal } from "./gate.ts";
import type { TellOutage } from "./outage-notice.ts";

/** Longest a command may take, the erasure of a person with many messages included. */
const COMMAND_TIMEOUT_MS = 120_000;
const STORE_IS_AWAY =
  "My memory is out of reach right now. I will do this as soon as it is back: you need not ask for it again.";

const GIVEN_UP = "Given up: I tried this again and again without coming to its end.";

export interface BotDeps {
  answers: Answers;
  secondThoughts: SecondThoughts;
  explain: Explain;
  waiting: Pick<WaitingMarks, "show" | "clear">;
  gate: Gate;
  history: History;
  commands: readonly Command[];
  rate: Rate;
  imagine: Pick<Imagine, "act" | "giveUp" | "dismiss" | "onAccepted" | "onWaiting">;
  tellOutage: TellOutage;
  /** Accepts what the bot asks itself on behalf of a person. */
  accept: Accept;
  sinkOf: SinkOf;
  metrics: Pick<Metrics, "givenUp">;
  log: Logger;
}

/** One inbound event becomes a turn, a command, a change of the history, or nothing. */
export function createBot(deps: BotDeps): Worker {
  const { answers, secondThoughts, explain, commands, rate, imagine } = deps;
  const replies = createReplies(deps);
  const { reply, notify, refuseAtOnce } = replies;
  /** Stops that were answered when they came, and have yet to come up in their conversation. */
  const refused = new Set<string>();

  async function onCommand(event: CommandEvent, signal: AbortSignal): Promise<void> {
    // Anyone not allowed to stop it was told while it streamed.
    if (refused.delete(event.key)) return;
    const command = commands.find(({ name }) => name === event.name);
    if (command !== undefined) {
      return reply(event, signal, (sink, signal) => command.run(event, sink, signal), command.boundsItself);
    }
    const known = commands.map(({ name }) => `/${name}`).join(", ");
    await notify(event, `There is no command of that name. I know ${known}.`, signal);
  }

  async function onAction(
    event: ActionEvent,
    batch: InboundEvent[],
    signal: AbortSignal,
  ): Promise<readonly InboundEvent[]> {
    if (readPictureId(event.turnId) !== undefined) {
      const refusal = await imagine.act(event, signal);
      if (refusal !== undefined) await notify(event, refusal, signal);
      return batch;
    }
    if (event.action === "stop") {
      if (!refused.delete(event.key)) await notify(event, await answers.stopLate(event, signal), signal);
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
    if (event.action === "explain") {
      await reply(event, signal, async (sink, signal) => {
        await postNotice(sink, event, await explain(event, sink.limits), signal);
      });
      return batch;
    }
    if (event.action === "show" || event.action === "delete") {
      const refusal = await (event.action === "show"
        ? secondThoughts.show(event, signal)
        : secondThoughts.remove(event));
      if (refusal !== undefined) await notify(event, refusal, signal);
      return batch;
    }
    return answerAgain(deps, replies, event, { events: batch }, signal);
  }

  async function work(batch: InboundEvent[], signal: AbortSignal): Promise<readonly InboundEvent[]> {
    const [first] = batch;
    // Messages are checked later, in `answerMessages`; edits always change the history.
    if (first?.kind === "command" || first?.kind === "action") {
      const refusing = deps.gate.findRefusal(first);
      const refusal = refusing && (await refusing);
      if (refusal !== undefined) {
        if (isDrawing(first)) await imagine.dismiss(first);
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

  return {
    take: takeBatch,
    work: withOutageNotice(work, deps.tellOutage),
    giveUp: (events, signal) => giveUp(deps, replies, events, signal),
    onAccepted(event) {
      const refusal = answers.interrupt(event);
      if (refusal !== undefined && (event.kind === "action" || isSpokenStop(event))) {
        refused.add(event.key);
        void refuseAtOnce(event, refusal);
      }
      imagine.onAccepted(event);
      if (answers.isAnswering(event.conversationId)) showWaiting(deps, event);
    },
    onWaiting(event) {
      if (isDrawing(event)) imagine.onWaiting(event);
      else showWaiting(deps, event);
    },
  };
}

/** Shows at a question that it is not forgotten. What is said between people asks for nothing. */
function showWaiting({ waiting, history }: BotDeps, event: InboundEvent): void {
  if (event.kind !== "message" || event.addressed === "other") return;
  if (event.addressed === "bot") return waiting.show(event);
  const isFollowed = history.isFollowed(event.conversationId, event.at).catch(() => false);
  void isFollowed.then((isOurs) => isOurs && waiting.show(event));
}

/** Tells the author of a command or a press that it takes longer; the queue tries it again. */
function withOutageNotice(work: Worker["work"], tellOutage: TellOutage): Worker["work"] {
  return async (batch, signal) => {
    const [first] = batch;
    try {
      return await work(batch, signal);
    } catch (error) {
      const isWaitedFor = first?.kind === "command" || first?.kind === "action";
      if (isWaitedFor && isStoreOutage(error)) await tellOutage(first, STORE_IS_AWAY);
      throw error;
    }
  };
}

/** Tells the person who asked once; nobody waits for an edit or a deletion. */
async function giveUp(
  deps: BotDeps,
  replies: Replies,
  events: InboundEvent[],
  signal: AbortSignal,
): Promise<readonly InboundEvent[]> {
  const [first] = events;
  deps.metrics.givenUp();
  if (first?.kind === "message") return answerMessages(deps, { events, isGivenUp: true }, signal);
  if (first?.kind !== "command" && first?.kind !== "action") return events;
  if (isDrawing(first)) {
    const sentence = await deps.imagine.giveUp(first, signal);
    if (sentence !== undefined) await replies.notify(first, sentence, signal);
  } else if (asksAnew(first)) {
    return answerAgain(deps, replies, first, { events, isGivenUp: true }, signal);
  } else {
    await replies.notify(first, GIVEN_UP, signal);
  }
  return events;
}

async function answerMessages(
  deps: BotDeps,
  { events, ...how }: Omit<Batch, "messages">,
  signal: AbortSignal,
): Promise<readonly InboundEvent[]> {
  const messages = foldBatch(events);
  if (messages[0]?.addressed === "other") {
    await deps.history.setFollowed(messages[0].conversationId, false);
    await deps.answers.overhear(messages);
    return events;
  }
  let refusal: Refusal | undefined;
  // Not awaited here: the turn must be registered first, so that an edit or a Stop during this check reaches it.
  async function isWanted(): Promise<boolean> {
    const [first] = events;
    if (first === undefined) return false;
    // An edit may have made it a question. The turn has its id from the first event, even where that is deleted.
    refusal = await deps.gate.findRefusal({ ...(messages[0] ?? first), key: first.key });
    return refusal === undefined && isForUs(deps, messages);
  }
  const done = await deps.answers.answer({ events, messages, ...how }, isWanted(), signal);
  if (refusal !== undefined) await tellRefused(deps, messages, refusal, signal);
  return done;
}

/** Only those who asked the bot are told: others spoke to people. */
async function tellRefused(
  { waiting, gate }: BotDeps,
  messages: readonly MessageEvent[],
  refusal: Refusal,
  signal: AbortSignal,
): Promise<void> {
  waiting.clear(messages);
  const asked = messages.find(({ addressed, isListenedTo }) => addressed === "bot" && isListenedTo !== true);
  if (asked !== undefined) await gate.tell(asked, refusal, signal);
}

async function answerAgain(
  { answers }: BotDeps,
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
  { answers, accept }: BotDeps,
  { notify }: Replies,
  event: ActionEvent,
  signal: AbortSignal,
): Promise<void> {
  const question = await answers.toContinuation(event);
  if (typeof question === "string") return notify(event, question, signal);
  await accept(question);
  await answers.continued(event, signal);
}

/** A message to nobody in particular is ours while the bot follows the conversation. */
async function isForUs({ history, log }: BotDeps, messages: MessageEvent[]): Promise<boolean> {
  const conversationId = messages[0]?.conversationId;
  if (conversationId === undefined) return true;
  try {
    const asked = messages.find(({ addressed }) => addressed === "bot");
    // A message from before the question may arrive after it, over another connection.
    if (asked === undefined) return await history.isFollowed(conversationId, messages.at(-1)?.at);
    await history.setFollowed(conversationId, true, asked.at);
    return true;
  } catch (error) {
    log.warn({ err: error, conversationId }, "the follow state of a conversation could not be read");
    return messages.some(({ addressed }) => addressed === "bot");
  }
}

type Replies = ReturnType<typeof createReplies>;

/** Speaks to the person who gave a command or pressed a button. */
function createReplies({ sinkOf, log }: BotDeps) {
  function notify(event: CommandEvent | ActionEvent, text: string, signal: AbortSignal): Promise<void> {
    return reply(event, signal, (sink, signal) => postNotice(sink, event, text, signal));
  }

  /** Lets `deliver` answer the author alone. Where no message of ours is taken any more, there is nobody to tell. */
  async function reply(
    event: CommandEvent | ActionEvent,
    signal: AbortSignal,
    deliver: (sink: ReplySink, signal: AbortSignal) => Promise<void>,
    boundsItself = false,
  ): Promise<void> {
    const sink = sinkOf({ ...event.reply, visibleTo: event.author.id });
    try {
      if (boundsItself) await deliver(sink, signal);
      else await runWithin(COMMAND_TIMEOUT_MS, (signal) => deliver(sink, signal), signal);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      log.warn({ err: error, key: event.key }, "an answer to a command or a button could not be delivered");
    }
  }

  /** Answers at once: by the time the press comes up in its conversation, the answer is over. */
  async function refuseAtOnce(event: ActionEvent | CommandEvent, refusal: string): Promise<void> {
    try {
      await notify(event, refusal, NEVER);
    } catch (error) {
      log.warn({ err: error, key: event.key }, "a person could not be told why a stop was refused");
    }
  }

  return { reply, notify, refuseAtOnce };
}

/** An edit or a deletion. An answer that waits for a person begins anew with it, or goes. */
async function onChanged(deps: BotDeps, event: EditedEvent | DeletedEvent, signal: AbortSignal): Promise<void> {
  const mayAsk = event.kind === "deleted" || (await deps.gate.findRefusal(event)) === undefined;
  if (mayAsk && (await deps.answers.reconsider(event, signal))) return;
  if (event.kind === "edited") return onEdited(deps, event);
  // The process that hears of it may not be the one that did it.
  if (await deps.secondThoughts.isLeftBehind(event.messageId)) return;
  const isKept = await deps.history.remove(event.messageId);
  if (!isKept) await deps.history.markDeleted(event.messageId);
  await deps.secondThoughts.onDeleted(event, signal);
}

/**
 * A message that an edit addresses to the bot becomes a question, unless it was answered before: then, where it says
 * something else now, it is answered once more.
 */
async function onEdited(
  { secondThoughts, history, accept }: BotDeps,
  { addressed, ...event }: EditedEvent,
): Promise<void> {
  const { messageId, text, attachments } = event;
  const again = await secondThoughts.onEdited(event);
  if (again !== undefined) await accept(again);
  await history.edit(messageId, text, attachments);
  if (addressed === undefined || (await wasAsked(history, messageId))) return;
  // An overheard message that now addresses the bot is asked where the conversation stands by now.
  await history.remove(messageId);
  await accept({ ...event, kind: "message", key: `${event.key}:asked`, addressed });
}

async function wasAsked(history: Pick<History, "find" | "read">, messageId: string): Promise<boolean> {
  const place = await history.find(messageId);
  if (place === undefined) return false;
  const { entries } = await history.read(place.conversationId, { maxEntries: 1, upToId: messageId });
  return entries[0]?.isEarlier !== true;
}
