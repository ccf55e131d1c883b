import type { GatewayMessageDeleteDispatchData } from "discord.js";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { IsListening } from "../../../src/port/catalogue.ts";
import type { Author, DeletedEvent, EditedEvent, InboundEvent, MessageEvent } from "../../../src/port/events.ts";
import { toDeletionKey } from "../../../src/port/ids.ts";
import type { RoomKind } from "../api/rooms.ts";
import { PLATFORM, timeOf, toFingerprint, toMessageId } from "../ids.ts";
import type { TellNotAllowed } from "../write/notice.ts";
import type { Delivery } from "./delivery.ts";
import type { FindMessage } from "./earlier.ts";
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
import type { FindMember } from "./people.ts";
import type { Activity, PlaceQuestion } from "./threads.ts";
import type { Message } from "./wording.ts";

/** An edit can turn a message into a question. The bot answers it only if the message is younger than this. */
const FRESH_MS = 15 * 60_000;
/** Used as the author of a deletion, because Discord reports neither who wrote a deleted message nor who deleted it. */
const SOMEBODY: Author = { id: "unknown", name: "unknown" };

type Deleted = Pick<GatewayMessageDeleteDispatchData, "id" | "channel_id" | "guild_id">;

export interface Listener {
  /** `isAnswered`: the message already has an answer, perhaps from an earlier process, so the bot only remembers it. */
  onMessage(message: Message, isAnswered?: boolean): void;
  onEdit(message: Message): void;
  onDelete(deleted: Deleted): void;
}

export interface ListenerDeps extends Omit<InboundDeps, "botId"> {
  /** Undefined until the gateway reports it, before the first message. */
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

  /** Ignores a failed edit or deletion, which the delivery has logged. */
  function offer(channelId: string, toEvents: () => Promise<readonly InboundEvent[]>): void {
    delivery.enqueue(channelId, toEvents).catch(() => {});
  }

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
        // Ignores an event that a resumed session repeats.
        if (known.get(message.id) !== undefined) return [];
        const event = await toPlaced(await withAnswered(message, state), botId, state, isAnswered);
        return event === undefined ? [] : [event];
      };
      const toWaiting = () => toMessageEvent(message, kindOf(message, state), { ...state, botId });
      // Forgets a message that could not be stored, because it can arrive again with the missed messages.
      delivery.enqueue(message.channel_id, toEvents, toWaiting).catch(() => known.forget(message.id));
    },
    onEdit(given) {
      const botId = deps.botId();
      if (botId === undefined) return;
      // Without an author, the event contains only the changed fields.
      if (given.author === undefined) {
        return offer(given.channel_id, async () => toPartialEditEvents(given, botId, state));
      }
      const message = toWhole(given, botId);
      if (message.author.id === botId) return activity.see(message);
      if (!isByPerson(message) || message.edited_timestamp === null) return;
      offer(message.channel_id, async () => toEditEvents(await withAnswered(message, state), botId, state));
    },
    onDelete(deleted) {
      activity.forget(deleted);
      offer(deleted.channel_id, async () => toDeleteEvents(deleted, deps.botId(), state));
    },
  };
}

/** Adds the message that this one replies to, because Discord can omit it. */
async function withAnswered(message: Message, { findMessage }: ListenerState): Promise<Message> {
  const messageId = message.message_reference?.message_id;
  const isWhole = messageId === undefined || message.referenced_message !== undefined;
  if (isWhole || !isReplyHere(message) || !isByPerson(message)) return message;
  return { ...message, referenced_message: (await findMessage({ channelId: message.channel_id, messageId })) ?? null };
}

/** The event for a message, with the place of its answer. Remembers both for edits and deletions. */
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
    // Tells the author, because the bot cannot answer there. A refused attempt would count against the bot.
    if (event.addressed === "bot") void state.tellNotAllowed(message.author.id, message.channel_id);
    return undefined;
  }
  const at = { channelId: message.channel_id, messageId: message.id };
  const placed = kind === "channel" && !isAnswered ? await state.place(event, at) : event;
  state.known.set(message.id, placed);
  return placed;
}

/** Looks up whether the bot listens to the channel only if that matters. */
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
  // A message from a call lacks its author's roles, which decide the author's permissions.
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
    // Discord also sends an update for a preview, a pin or a thread. It is empty if the bot cannot read the message.
    const isEdit = toBodyKey(body) !== before.body && (body.text !== "" || body.attachments.length > 0);
    const addressed = toMessageEvent(message, kindOf(message, state), { ...state, botId })?.addressed;
    const isAsked = isFresh && addressed === "bot" && before.addressed !== "bot";
    // `toBody` leaves out a mention that only addresses the bot, so adding one is no edit. It does set `isAsked`.
    if (!isEdit && !isAsked) return [];
    return [toEdited(message, { ...before, ...body, addressed: addressed ?? before.addressed }, isAsked, state)];
  }
  const event = await readMessage(message, kindOf(message, state), botId, state);
  if (event === undefined) return [];
  // This process did not see the message. If another process did, the message's key is already claimed, so only the
  // edit counts.
  const placed = isFresh ? await toPlaced(message, botId, state) : undefined;
  const edited = toEdited(message, placed ?? event, placed?.addressed === "bot", state);
  return placed === undefined ? [edited] : [placed, edited];
}

/** Reads the message again if this process knows it and its text has changed. */
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

/** `isAsked`: the edit may have addressed the message to the bot. The bot still answers a message only once. */
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

/** If a forward was deleted, also edits its comment, which no longer includes the forward's text. */
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
  // An unknown message in a channel, written while this process listened, never concerned the bot.
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

/** Messages from the gateway have the channel's type. Messages from a call do not. */
function kindOf(message: Message, { rooms }: ListenerState): RoomKind {
  return rooms.kindOf(message.channel_id, message.guild_id, message.channel_type);
}

const MAX_KNOWN = 5_000;

/** The fields of a message that its edits and its deletion need. */
type KnownMessage = Pick<MessageEvent, "conversationId" | "author" | "reply" | "addressed"> & { body: string };

/** The messages received last, by their Discord ids. */
interface KnownMessages {
  get(id: string): KnownMessage | undefined;
  set(id: string, message: Whole): void;
  forget(id: string): void;
  setOwn(id: string): void;
  isOwn(id: string): boolean;
}

function createKnownMessages(): KnownMessages {
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

function toBodyKey({ text, attachments }: Pick<EditedEvent, "text" | "attachments">): string {
  return JSON.stringify([text, attachments.map(({ id }) => id)]);
}
