import type { GatewayMessageDeleteDispatchData } from "discord.js";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { IsListening } from "../../../src/port/catalogue.ts";
import type { Author, DeletedEvent, EditedEvent, InboundEvent, MessageEvent } from "../../../src/port/events.ts";
import { toDeletionKey } from "../../../src/port/ids.ts";
import type { RoomKind } from "../api/rooms.ts";
import { PLATFORM, timeOf, toFingerprint, toMessageId } from "../ids.ts";
import type { Activity } from "./activity.ts";
import type { Delivery } from "./delivery.ts";
import type { FindMessage } from "./earlier.ts";
import type { FindMember } from "./find-author.ts";
import { createForwards, type Forwards } from "./forwards.ts";
import {
  type InboundDeps,
  isByPerson,
  isReplyHere,
  mayBeOurs,
  toBody,
  toConversationId,
  toMessageEvent,
  toWhole,
} from "./inbound.ts";
import type { TellNotAllowed } from "./permission-notice.ts";
import type { PlaceQuestion } from "./threads.ts";
import type { Message } from "./wording.ts";

/** A message that comes to concern the bot by an edit is answered when it is no older than this. */
const FRESH_MS = 15 * 60_000;
/** Discord says of a deletion neither who wrote the message nor who deleted it. */
const SOMEBODY: Author = { id: "unknown", name: "unknown" };

type Deleted = Pick<GatewayMessageDeleteDispatchData, "id" | "channel_id" | "guild_id">;

/** Turns what happens to messages into events. */
export interface Listener {
  /** `isAnswered`: it has an answer already, perhaps by a former process, and only has to be remembered. */
  onMessage(message: Message, isAnswered?: boolean): void;
  onEdit(message: Message): void;
  onDelete(deleted: Deleted): void;
}

export interface ListenerDeps extends Omit<InboundDeps, "botId"> {
  /** Undefined until the gateway has said it, before the first message. */
  botId(): string | undefined;
  delivery: Pick<Delivery, "enqueue">;
  activity: Activity;
  place: PlaceQuestion;
  tellNotAllowed: TellNotAllowed;
  findMember: FindMember;
  findMessage: FindMessage;
  isListening?: IsListening | undefined;
  now(): number;
}

interface ListenerState extends ListenerDeps {
  known: KnownMessages;
  forwards: Forwards;
  startedAt: number;
}

export function createListener(deps: ListenerDeps): Listener {
  const [known, forwards] = [createKnownMessages(), createForwards()];
  const state: ListenerState = { ...deps, known, forwards, startedAt: deps.now() };
  const { delivery, activity } = state;

  return {
    onMessage(given, isAnswered = false) {
      const botId = deps.botId();
      if (botId === undefined) return;
      const whole = toWhole(given, botId);
      if (whole.author.id === botId) {
        known.setOwn(whole.id);
        activity.see(whole);
        return;
      }
      const message = forwards.see(whole);
      const toEvents = async () => {
        // A resumed session repeats events.
        if (known.get(message.id) !== undefined) return [];
        const event = await toPlaced(await withAnswered(message, state), botId, state, isAnswered);
        return event === undefined ? [] : [event];
      };
      const toWaiting = () => toMessageEvent(message, kindOf(message, state), { ...state, botId });
      const delivering = delivery.enqueue(message.channel_id, toEvents, toWaiting);
      // A message that could not be stored may come once more, when missed messages are read.
      void delivering.then((isTaken) => isTaken || known.forget(message.id));
    },
    onEdit(given) {
      const botId = deps.botId();
      if (botId === undefined) return;
      // An update may hold only the fields that changed.
      if (given.author === undefined) {
        return void delivery.enqueue(given.channel_id, async () => toPartialEditEvents(given, botId, state));
      }
      const message = toWhole(given, botId);
      if (message.author.id === botId) return activity.see(message);
      if (!isByPerson(message) || message.edited_timestamp === null) return;
      void delivery.enqueue(message.channel_id, async () => {
        return toEditEvents(await withAnswered(message, state), botId, state);
      });
    },
    onDelete(deleted) {
      activity.forget(deleted);
      void delivery.enqueue(deleted.channel_id, async () => toDeleteEvents(deleted, deps.botId(), state));
    },
  };
}

/** A reply with the message that it answers, which Discord may leave out. */
async function withAnswered(message: Message, { findMessage }: ListenerState): Promise<Message> {
  const messageId = message.message_reference?.message_id;
  const isWhole = messageId === undefined || message.referenced_message !== undefined;
  if (isWhole || !isReplyHere(message) || !isByPerson(message)) return message;
  return { ...message, referenced_message: (await findMessage({ channelId: message.channel_id, messageId })) ?? null };
}

/** The event of a message with the place of its answer; remembers it for edits and deletions. */
async function toPlaced(
  message: Message,
  botId: string,
  state: ListenerState,
  isAnswered = false,
): Promise<MessageEvent | undefined> {
  const kind = kindOf(message, state);
  const event = await readMessage(message, kind, botId, state);
  if (event === undefined || (await state.forwards.isCommented(message))) return undefined;
  if (!state.rooms.mayWrite(message.channel_id)) {
    // Nothing of an answer could be shown, and each try would count against the bot.
    if (event.addressed === "bot") void state.tellNotAllowed(message.author.id, message.channel_id);
    return undefined;
  }
  const at = { channelId: message.channel_id, messageId: message.id };
  // An answered question gets no thread for the answer it has.
  const placed = kind === "channel" && !isAnswered ? await state.place(event, at) : event;
  state.known.set(message.id, placed);
  return placed;
}

/** Asks only where it matters: whether the bot listens is looked up for each message. */
async function readMessage(
  message: Message,
  kind: RoomKind,
  botId: string,
  state: ListenerState,
): Promise<MessageEvent | undefined> {
  const deps = { ...state, botId };
  const channel = { platform: PLATFORM, ...toWorkspace(message), channelId: message.channel_id };
  const isListening = mayBeOurs(message, kind, deps) && (await state.isListening?.(channel)) === true;
  const event = toMessageEvent(message, kind, deps, isListening);
  if (event === undefined || message.guild_id === undefined || message.member !== undefined) return event;
  // It was asked for by a call, after a pause: what its author may do depends on roles that it does not tell.
  const member = await state.findMember(message.guild_id, message.author.id);
  return member === undefined ? event : toMessageEvent({ ...message, member }, kind, deps, isListening);
}

function toWorkspace({ guild_id }: Message): { workspaceId?: string } {
  return guild_id === undefined ? {} : { workspaceId: guild_id };
}

async function toEditEvents(given: Message, botId: string, state: ListenerState): Promise<InboundEvent[]> {
  const { known, forwards, now } = state;
  const message = forwards.edited(given);
  const before = known.get(message.id);
  const isFresh = timeOf(message.id) > now() - FRESH_MS;
  if (before !== undefined) {
    const body = toBody(message, { ...state, botId });
    // Discord sends an update also for a preview, a pin or a thread, and an empty one where the bot may not read.
    const isEdit = toBodyKey(body) !== before.body && (body.text !== "" || body.attachments.length > 0);
    const addressed = toMessageEvent(message, kindOf(message, state), { ...state, botId })?.addressed;
    const isAsked = isFresh && addressed === "bot" && before.addressed !== "bot";
    // The mention alone is no part of the words.
    if (!isEdit && !isAsked) return [];
    return [toEdited(message, { ...before, ...body, addressed: addressed ?? before.addressed }, isAsked, state)];
  }
  const event = await readMessage(message, kindOf(message, state), botId, state);
  if (event === undefined) return [];
  // Not seen by this process: if another took it, its key is claimed, and of the two only the edit counts.
  const placed = isFresh ? await toPlaced(message, botId, state) : undefined;
  const edited = toEdited(message, placed ?? event, placed?.addressed === "bot", state);
  return placed === undefined ? [edited] : [placed, edited];
}

/** Asks for the message where it is one that was heard, and its words have changed. */
async function toPartialEditEvents(
  { id: messageId, channel_id: channelId, guild_id, content }: Partial<Message> & Pick<Message, "id" | "channel_id">,
  botId: string,
  state: ListenerState,
): Promise<InboundEvent[]> {
  if (content === undefined || state.known.get(messageId) === undefined) return [];
  const found = await state.findMessage({ channelId, messageId });
  return found === undefined ? [] : toEditEvents(toWhole({ ...found, guild_id }, botId), botId, state);
}

type Whole = Pick<MessageEvent, "conversationId" | "author" | "reply" | "text" | "attachments" | "addressed">;

/** `isAsked`: the edit may be what made it a message to the bot, which answers no message twice. */
function toEdited(message: Message, whole: Whole, isAsked: boolean, { known, now }: ListenerState): EditedEvent {
  const { conversationId, author, reply, text, attachments } = whole;
  const edited: EditedEvent = {
    kind: "edited",
    key: `${PLATFORM}:${message.id}:edit:${message.edited_timestamp ?? toFingerprint(toBodyKey(whole))}`,
    conversationId,
    author,
    reply,
    text,
    attachments,
    messageId: toMessageId({ channelId: message.channel_id, messageId: message.id }),
    at: now(),
    ...(isAsked && { addressed: "bot" }),
  };
  known.set(message.id, whole);
  return edited;
}

/** A comment whose forward was deleted no longer has its words. */
async function toDeleteEvents(
  deleted: Deleted,
  botId: string | undefined,
  state: ListenerState,
): Promise<InboundEvent[]> {
  const comment = state.forwards.deleted(deleted.id);
  const isKnown = comment !== undefined && botId !== undefined && state.known.get(comment.id) !== undefined;
  return isKnown ? toEditEvents(comment, botId, state) : toDeleted(deleted, state);
}

function toDeleted({ id, channel_id: channelId, guild_id }: Deleted, state: ListenerState): DeletedEvent[] {
  const { known, rooms, startedAt, now } = state;
  const before = known.get(id);
  const kind = rooms.kindOf(channelId, guild_id, undefined);
  // An unknown message, written in a channel while this process listened, was never the bot's business.
  const isForeign = before === undefined && kind === "channel" && timeOf(id) > startedAt;
  if (known.isOwn(id) || isForeign) return [];
  known.forget(id);
  return [
    {
      kind: "deleted",
      key: toDeletionKey(`${PLATFORM}:${id}`),
      conversationId: before?.conversationId ?? toConversationId(channelId, id, kind),
      author: before?.author ?? SOMEBODY,
      reply: before?.reply ?? { platform: PLATFORM, channelId },
      messageId: toMessageId({ channelId, messageId: id }),
      at: now(),
    },
  ];
}

/** The gateway's messages have the type of the channel; those read by a call do not. */
function kindOf(message: Message, { rooms }: ListenerState): RoomKind {
  return rooms.kindOf(message.channel_id, message.guild_id, message.channel_type);
}

const MAX_KNOWN = 5_000;

/** The delivered part of a message: its edits and its deletion go the same way. */
export type KnownMessage = Pick<MessageEvent, "conversationId" | "author" | "reply" | "addressed"> & { body: string };

/** The messages heard last, by their ids on Discord. */
export interface KnownMessages {
  get(id: string): KnownMessage | undefined;
  set(id: string, message: Whole): void;
  forget(id: string): void;
  /** A message of the bot. */
  setOwn(id: string): void;
  isOwn(id: string): boolean;
}

export function createKnownMessages(): KnownMessages {
  const known = new BoundedMap<string, KnownMessage>(MAX_KNOWN);
  const own = new BoundedMap<string, true>(MAX_KNOWN);
  return {
    get: (id) => known.get(id),
    set(id, { conversationId, author, reply, addressed, ...body }) {
      known.set(id, { conversationId, author, reply, addressed, body: toBodyKey(body) });
    },
    forget: (id) => void known.delete(id),
    setOwn: (id) => void own.set(id, true),
    isOwn: (id) => own.has(id),
  };
}

/** The same for the same words and files. */
export function toBodyKey({ text, attachments }: Pick<EditedEvent, "text" | "attachments">): string {
  return JSON.stringify([text, attachments.map(({ id }) => id)]);
}
