import { COMMAND_NAMES } from "../commands/commands.ts";
import { toSpokenCommand } from "../commands/spoken.ts";
import { waitAtMost } from "../concurrency/deadlines.ts";
import { toPictureLane } from "../imagine/lanes.ts";
import { type Accept, type ActionEvent, type InboundEvent, isSpokenStop, type MessageEvent } from "../port/events.ts";
import { isPrivateConversation, readTurnId, toConversationOf } from "../port/ids.ts";
import type { Services } from "../services/services.ts";
import { leaveOut } from "../text/leave-out.ts";
import type { TurnRecords } from "../turn/records.ts";
import type { RunningTurns } from "../turn/running.ts";
import type { NotifyOutage } from "./outage-notice.ts";

/**
 * Maximum length of an event's text, in characters. No platform lets people write more (Slack 40,000, the local page
 * 20,000, Discord 4,000), but a message that quotes others can be longer and would slow down every later read.
 */
export const MAX_TEXT_CHARS = 40_000;
/** If the store takes longer, the bot notifies the author of a typed command. */
const STORE_MS = 1_500;
/** Says "a few minutes", because platforms stop redelivering a message after that time. */
const WAITS =
  "My storage is unavailable. I'll do this if it's back within a few minutes. If nothing has happened by then, ask again.";

export interface AcceptDeps extends Services {
  records: TurnRecords;
  turns: RunningTurns;
  notifyOutage: NotifyOutage;
}

export interface Acceptance {
  accept: Accept;
  /** Notifies the author of a typed command that the command waits for the store. Ignores other events. */
  notifyDelayed(event: InboundEvent): void;
}

/**
 * Accepts events from the adapters and assigns each event to a conversation:
 * - A reply belongs to the conversation of the message it answers, an edit or a deletion to that of the changed
 *   message, and a button press to that of the button's turn. If that conversation is unknown, the event stays in the
 *   conversation that the adapter named.
 * - A private question starts a new conversation.
 *
 * Turns a message that spells out a command into that command. Notifies the author if the store is too slow. Cuts out
 * the middle of a text that is longer than `MAX_TEXT_CHARS`.
 */
export function createAccept(deps: AcceptDeps): Acceptance {
  const { queue, history, turns, records, notifyOutage, metrics, log } = deps;

  async function conversationOf(messageId: string): Promise<string | undefined> {
    const running = turns.conversationOf(messageId);
    if (running !== undefined) return running;
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
    // A public message never joins a private conversation, even if it replies to a private message.
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

  /**
   * Turns a message into the command that it spells out. A message to another person, or in a conversation that the bot
   * does not follow, is never a command.
   */
  async function understand(event: InboundEvent): Promise<InboundEvent> {
    if (event.kind !== "message" || event.addressed === "other") return event;
    const command = toSpokenCommand(event, COMMAND_NAMES);
    if (command === undefined) return event;
    return event.addressed === "bot" || (await isFollowed(event)) ? command : event;
  }

  /** Outside of a conversation, a typed "stop" stops the author's newest question in the channel. */
  async function aimStop(event: InboundEvent): Promise<InboundEvent> {
    const { conversationId, reply, author } = event;
    if (!isSpokenStop(event)) return event;
    try {
      if (!(await history.isNew(conversationId))) return event;
      return { ...event, conversationId: (await records.answeredAt(reply, author.id)) ?? conversationId };
    } catch (error) {
      log.warn({ err: error, conversationId }, "the answer to stop could not be looked up");
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
    return isToBot && toSpokenCommand(event, COMMAND_NAMES) !== undefined;
  }

  function notifyDelayed(event: InboundEvent): void {
    if (isSpoken(event)) void notifyOutage(event, WAITS);
  }

  return {
    notifyDelayed,
    accept(event) {
      const taking = take(event);
      if (isSpoken(event)) {
        const stored = taking.then(
          () => true,
          () => false,
        );
        void waitAtMost(stored, STORE_MS).then((isStored) => isStored === true || notifyDelayed(event));
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

/** Returns the id of the message whose conversation the event belongs to. */
function toRelated(event: InboundEvent): string | undefined {
  if (event.kind === "message") return event.inReplyTo;
  return event.kind === "edited" || event.kind === "deleted" ? event.messageId : undefined;
}
