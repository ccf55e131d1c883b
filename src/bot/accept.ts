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
 * The longest text in an event, in characters. People cannot write more on any platform (Slack 40,000, the local page
 * 20,000, Discord 4,000). A message that quotes others can be longer, and it would slow down every later read.
 */
export const MAX_TEXT_CHARS = 40_000;
/** How long the bot waits for the store before it tells the author of a typed command. */
const STORE_MS = 1_500;
/** The platforms deliver a message again only within some minutes. */
const WAITS =
  "My storage is unavailable. I'll do this if it's back within a few minutes. If nothing has happened by then, ask again.";

export interface AcceptDeps extends Services {
  records: TurnRecords;
  turns: RunningTurns;
  notifyOutage: NotifyOutage;
}

export interface Acceptance {
  accept: Accept;
  /** Tells the author of a typed command that it waits for the store. Does nothing for other events. */
  notifyDelayed(event: InboundEvent): void;
}

/**
 * Accepts events from the adapters and assigns each event to its conversation. A reply belongs to the conversation of
 * the message it answers, an edit or a deletion to that of its message, and a button to that of its turn. If none is
 * known, the event keeps its conversation. A private question starts a new conversation. A message to the bot that is a
 * command becomes that command. If the store does not accept it in time, its author gets a notice. If a text is longer
 * than `MAX_TEXT_CHARS`, a mark replaces its middle.
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
    // A public message never joins a private conversation, even if it replies to a message there.
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

  /** A message is not a command if it is for someone else, or in a conversation that the bot does not follow. */
  async function understand(event: InboundEvent): Promise<InboundEvent> {
    if (event.kind !== "message" || event.addressed === "other") return event;
    const command = toSpokenCommand(event, COMMAND_NAMES);
    if (command === undefined) return event;
    return event.addressed === "bot" || (await isFollowed(event)) ? command : event;
  }

  /** A typed stop outside of any conversation stops the author's newest question in that channel. */
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

/** Returns the message whose conversation an event belongs to. */
function toRelated(event: InboundEvent): string | undefined {
  if (event.kind === "message") return event.inReplyTo;
  return event.kind === "edited" || event.kind === "deleted" ? event.messageId : undefined;
}
