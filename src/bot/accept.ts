import type { Logger } from "pino";
import { toSpokenCommand } from "../commands/spoken.ts";
import { waitAtMost } from "../concurrency/deadlines.ts";
import type { History } from "../history/history.ts";
import { toPictureLane } from "../imagine/picture-lanes.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { type Accept, type ActionEvent, type InboundEvent, isSpokenStop, type MessageEvent } from "../port/events.ts";
import { isPrivateConversation, readTurnId, toConversationOf } from "../port/ids.ts";
import type { Queue } from "../queue/queue.ts";
import { leaveOut } from "../text/leave-out.ts";
import type { Answers } from "../turn/answers.ts";
import type { TurnRecords } from "../turn/record.ts";
import type { TellOutage } from "./outage-notice.ts";

/**
 * Longest text of an event, in characters: no platform lets people write more (Slack 40,000, the page 20,000, Discord
 * 4,000). What comes with more, as a message with others quoted in it may, would hold up everybody each time it is read.
 */
export const MAX_TEXT_CHARS = 40_000;
/** Longest that a command said in a message waits to be stored without a word. */
const STORE_MS = 1_500;
/** The platforms bring a message again, or offer it again, for some minutes only. */
const WAITS =
  "My memory is out of reach right now. I will do this when it is back within a few minutes. If nothing has come by then, say it again.";

export interface AcceptDeps {
  queue: Pick<Queue, "accept" | "conversationOf">;
  history: Pick<History, "find" | "isFollowed" | "isNew">;
  answers: Pick<Answers, "conversationOf">;
  records: Pick<TurnRecords, "load" | "conversationOf" | "answeredAt">;
  /** Names of the commands that a message may say in words. */
  commandNames: readonly string[];
  tellOutage: TellOutage;
  metrics: Pick<Metrics, "intakeFailed">;
  log: Logger;
}

export interface Acceptance {
  accept: Accept;
  /** Tells whoever said a command that it waits for the store; everything else passes in silence. */
  sayWaits(event: InboundEvent): void;
}

/**
 * Accepts events for the adapters, each in the conversation it belongs to: a reply where the message it answers
 * is, an edit or a deletion where its message is, a button where its turn is. What is not known anywhere keeps the
 * conversation it came with. A message to the bot that says a command becomes that command. What is asked so that only
 * one person sees the answer is a conversation of its own. A text of more than `MAX_TEXT_CHARS` loses its middle, with a
 * mark that says so. Whoever says a command that cannot be stored is told that it waits.
 */
export function createAccept(deps: AcceptDeps): Acceptance {
  const { queue, history, answers, records, commandNames, tellOutage, metrics, log } = deps;

  async function conversationOf(messageId: string): Promise<string | undefined> {
    const atHand = answers.conversationOf(messageId);
    if (atHand !== undefined) return atHand;
    try {
      return (
        (await queue.conversationOf(messageId)) ??
        (await history.find(messageId))?.conversationId ??
        (await records.conversationOf(messageId))
      );
    } catch (error) {
      log.warn({ err: error, messageId }, "the conversation of a message could not be looked up");
      return undefined;
    }
  }

  async function conversationOfTurn(event: ActionEvent): Promise<string | undefined> {
    const turnId = readTurnId(event.turnId);
    try {
      return (await records.load(turnId))?.conversationId;
    } catch (error) {
      log.warn({ err: error, turnId }, "the conversation of a turn could not be looked up");
      return undefined;
    }
  }

  async function find(event: InboundEvent): Promise<string | undefined> {
    if (event.kind === "action") return conversationOfTurn(event);
    const messageId = toRelated(event);
    const found = messageId === undefined ? undefined : await conversationOf(messageId);
    // A public message is no part of a private conversation, whatever message it names.
    const isPublic = event.kind === "message" && event.reply.visibleTo === undefined;
    return isPublic && found !== undefined && isPrivateConversation(found) ? undefined : found;
  }

  async function isFollowed({ conversationId, at }: MessageEvent): Promise<boolean> {
    try {
      return await history.isFollowed(conversationId, at);
    } catch (error) {
      log.warn({ err: error, conversationId }, "the follow state of a conversation could not be read");
      return false;
    }
  }

  /** Words to somebody else, or where the bot does not listen, are no command. */
  async function understand(event: InboundEvent): Promise<InboundEvent> {
    if (event.kind !== "message" || event.addressed === "other") return event;
    const command = toSpokenCommand(event, commandNames);
    if (command === undefined) return event;
    return event.addressed === "bot" || (await isFollowed(event)) ? command : event;
  }

  /** A stop said where no conversation exists is meant for the person's newest question in that place. */
  async function aimStop(event: InboundEvent): Promise<InboundEvent> {
    const { conversationId, reply, author } = event;
    if (!isSpokenStop(event)) return event;
    try {
      if (!(await history.isNew(conversationId))) return event;
      return { ...event, conversationId: (await records.answeredAt(reply, author.id)) ?? conversationId };
    } catch (error) {
      log.warn({ err: error, conversationId }, "the answer that a person wants to stop could not be looked up");
      return event;
    }
  }

  async function take(given: InboundEvent): Promise<void> {
    const event = withBoundedText(given);
    const conversationId = await find(event);
    const understood = await aimStop(
      await understand(conversationId === undefined ? event : { ...event, conversationId }),
    );
    const isQuestion = understood.kind === "message";
    const lane = toPictureLane(understood);
    const placed = isQuestion
      ? { ...understood, conversationId: toConversationOf(understood) }
      : { ...understood, ...(lane !== undefined && { lane }) };
    try {
      await queue.accept(placed);
    } catch (error) {
      metrics.intakeFailed();
      throw error;
    }
  }

  function isSpoken(event: InboundEvent): boolean {
    const isToBot = event.kind === "message" && event.addressed === "bot";
    return isToBot && toSpokenCommand(event, commandNames) !== undefined;
  }

  function sayWaits(event: InboundEvent): void {
    if (isSpoken(event)) void tellOutage(event, WAITS);
  }

  return {
    sayWaits,
    accept(event) {
      const taking = take(event);
      if (isSpoken(event)) {
        const stored = taking.then(
          () => true,
          () => false,
        );
        void waitAtMost(stored, STORE_MS).then((isStored) => isStored === true || sayWaits(event));
      }
      return taking;
    },
  };
}

function withBoundedText(event: InboundEvent): InboundEvent {
  if (!("text" in event) || event.text.length <= MAX_TEXT_CHARS) return event;
  const text = leaveOut(event.text, MAX_TEXT_CHARS);
  return event.kind === "message" ? { ...event, text, isCut: true } : { ...event, text };
}

/** The message whose conversation an event belongs to. */
function toRelated(event: InboundEvent): string | undefined {
  if (event.kind === "message") return event.inReplyTo;
  return event.kind === "edited" || event.kind === "deleted" ? event.messageId : undefined;
}
