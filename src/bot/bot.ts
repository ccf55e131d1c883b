import type { Logger } from "pino";
import type { Command } from "../commands/command.ts";
import type { History } from "../history/history.ts";
import type { Imagine } from "../imagine/imagine.ts";
import type { Rate } from "../people/feedback.ts";
import type { Accept, ActionEvent, CommandEvent, EditedEvent, InboundEvent, MessageEvent } from "../port/events.ts";
import { readPictureId } from "../port/ids.ts";
import { isDrawing } from "../queue/picture-lanes.ts";
import type { Worker } from "../queue/queue.ts";
import type { SinkOf } from "../reply/paced-sink.ts";
import { isStoreOutage } from "../store/outage.ts";
import type { Answers, Batch } from "../turn/answers.ts";
import { foldBatch, takeBatch } from "../turn/batch.ts";
import { createReplies, type Replies } from "./replies.ts";

const GIVEN_UP = "Given up: I tried this again and again without coming to its end.";

export interface BotDeps {
  answers: Answers;
  history: History;
  commands: readonly Command[];
  rate: Rate;
  imagine: Pick<Imagine, "press" | "giveUp" | "notice" | "hold">;
  /** Takes over what the bot asks itself on behalf of a person. */
  accept: Accept;
  sinkOf: SinkOf;
  log: Logger;
}

/** One inbound event becomes a turn, a command, a change of the history, or nothing. */
export function createBot(deps: BotDeps): Worker {
  const { answers, history, commands, rate, imagine, accept } = deps;
  const replies = createReplies(deps);
  const { reply, notify, refuseAtOnce } = replies;
  /** Presses that were answered when they came, and have yet to come up in their conversation. */
  const refused = new Set<string>();

  async function onCommand(event: CommandEvent, signal: AbortSignal): Promise<void> {
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
      const refusal = await imagine.press(event, signal);
      if (refusal !== undefined) await notify(event, refusal, signal);
      return batch;
    }
    if (event.action === "stop") {
      // Anyone not allowed to stop it was told while it streamed.
      if (!refused.delete(event.key)) await notify(event, await answers.stopLate(event, signal), signal);
      return batch;
    }
    if (event.action === "good" || event.action === "bad") {
      await rate(event, event.action);
      return batch;
    }
    if (event.action === "continue") {
      await goOn(event, signal);
      return batch;
    }
    return answerAgain(deps, replies, event, { events: batch }, signal);
  }

  /** A message that an edit addresses to the bot becomes a question, unless it was answered before. */
  async function onEdited({ addressed, ...event }: EditedEvent): Promise<void> {
    await history.edit(event.messageId, event.text, event.attachments);
    const isAsked = addressed !== undefined && (await history.find(event.messageId)) === undefined;
    if (isAsked) await accept({ ...event, kind: "message", key: `${event.key}:asked`, addressed });
  }

  async function goOn(event: ActionEvent, signal: AbortSignal): Promise<void> {
    const question = await answers.toContinuation(event);
    if (typeof question === "string") return notify(event, question, signal);
    await accept(question);
    await answers.continued(event, signal);
  }

  async function work(batch: InboundEvent[], signal: AbortSignal): Promise<readonly InboundEvent[]> {
    const [first] = batch;
    switch (first?.kind) {
      case "message":
        return answerMessages(deps, { events: batch }, signal);
      case "action":
        return onAction(first, batch, signal);
      case "command":
        await onCommand(first, signal);
        break;
      case "edited":
        await onEdited(first);
        break;
      case "deleted":
        await history.remove(first.messageId);
        break;
      case undefined:
    }
    return batch;
  }

  return {
    take: takeBatch,
    work: withOutageNotice(work, replies),
    giveUp: (events, signal) => giveUp(deps, replies, events, signal),
    notice(event) {
      const refusal = answers.interrupt(event);
      if (refusal !== undefined && event.kind === "action") {
        refused.add(event.key);
        void refuseAtOnce(event, refusal);
      }
      imagine.notice(event);
    },
    hold: imagine.hold,
  };
}

/** Tells the author of a command or a press once that it takes longer; the queue tries it again. */
function withOutageNotice(work: Worker["work"], { sayStoreIsAway }: Replies): Worker["work"] {
  const told = new Set<string>();

  return async (batch, signal) => {
    const [first] = batch;
    try {
      const done = await work(batch, signal);
      for (const { key } of done) told.delete(key);
      return done;
    } catch (error) {
      const isWaitedFor = first?.kind === "command" || first?.kind === "action";
      if (isWaitedFor && isStoreOutage(error) && !told.has(first.key)) {
        told.add(first.key);
        await sayStoreIsAway(first, signal);
      }
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
  if (first?.kind === "message") return answerMessages(deps, { events, isGivenUp: true }, signal);
  if (first?.kind !== "command" && first?.kind !== "action") return events;
  if (isDrawing(first)) {
    const sentence = await deps.imagine.giveUp(first, signal);
    if (sentence !== undefined) await replies.notify(first, sentence, signal);
  } else if (first.kind === "action" && first.action === "retry") {
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
    return events;
  }
  return deps.answers.answer({ events, messages, ...how }, isForUs(deps, messages), signal);
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

/**
 * A message to nobody in particular is ours while the bot follows the conversation; the first one to the bot begins
 * that.
 */
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
    log.warn({ err: error, conversationId }, "whether the bot follows this conversation is not known");
    return messages.some(({ addressed }) => addressed === "bot");
  }
}
