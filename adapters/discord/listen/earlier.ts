import { type APIMessage, MessageType, Routes } from "discord.js";
import type { EarlierMessage, MessageEvent } from "../../../src/port/events.ts";
import { askNames, type NamedRooms } from "../api/asked-names.ts";
import type { Api } from "../api/client.ts";
import { codeOf } from "../api/error.ts";
import type { Files } from "../api/files.ts";
import { type MessagePlace, readMessageId, timeOf, toMessageId } from "../ids.ts";
import { isByPerson, toAuthor, toWhole } from "./inbound.ts";
import { readText } from "./wording.ts";

/** The newest of what stands in a thread before the question. */
const MAX_MESSAGES = 50;
/** Replies that are followed back along a chain at most: one call each. */
const MAX_CHAIN = 6;
const UNKNOWN_MESSAGE = 10008;

export interface EarlierDeps {
  api: Api;
  files: Pick<Files, "toRefs">;
  botId: string;
  /** Undefined where the gateway tells nothing. */
  rooms: NamedRooms | undefined;
}

/**
 * Reads the earlier messages of people, oldest first: in a thread or a forum post those above the question, in a
 * channel the chain of replies that leads to it. A channel's own chatter is nobody's conversation, and a direct
 * one has the bot in it from its beginning. What bots say is left out.
 */
export async function readEarlier(
  event: MessageEvent,
  deps: EarlierDeps,
  signal: AbortSignal,
): Promise<EarlierMessage[]> {
  const { api, botId } = deps;
  const messages = await readMessages(event, deps, signal);
  const about = { guildId: event.reply.workspaceId, botId, texts: messages.map(({ content }) => content) };
  const rooms = deps.rooms ?? (await askNames(api, about, signal));
  return messages.flatMap((message) => toEarlier(message, { ...deps, rooms }));
}

async function readMessages(event: MessageEvent, deps: EarlierDeps, signal: AbortSignal): Promise<APIMessage[]> {
  const place = readMessageId(event.messageId);
  const threadId = toThreadId(event);
  if (place === undefined) return [];
  if (threadId === undefined) return readChain(event, deps, signal);
  // The thread was opened from the question itself.
  if (threadId === place.messageId) return [];
  const query = new URLSearchParams({ before: place.messageId, limit: String(MAX_MESSAGES) });
  const { data } = await deps.api.call({ method: "GET", route: Routes.channelMessages(threadId), query }, signal);
  // Discord lists the newest first.
  return (data as APIMessage[]).toReversed().flatMap(toStarter);
}

/** Undefined for a question in a channel or in a direct conversation. */
function toThreadId({ reply }: MessageEvent): string | undefined {
  if (reply.threadId !== undefined) return reply.threadId;
  // A thread whose channel is not known is named alone, like a direct conversation, where no reply points at anything.
  return reply.extra?.["root"] === undefined && reply.replyToId !== undefined ? reply.channelId : undefined;
}

/** A thread that hangs on a message begins with a sign that points to it. */
function toStarter(message: APIMessage): APIMessage[] {
  if (message.type !== MessageType.ThreadStarterMessage) return [message];
  const starter = message.referenced_message;
  return starter ? [starter] : [];
}

async function readChain(
  { inReplyTo = "", author }: MessageEvent,
  deps: EarlierDeps,
  signal: AbortSignal,
): Promise<APIMessage[]> {
  const found: APIMessage[] = [];
  let place = readMessageId(inReplyTo);
  for (let step = 0; place !== undefined && step < MAX_CHAIN; step++) {
    const message = await readMessage(place, deps.api, signal);
    // A reply to the bot belongs to a conversation that is known.
    if (message === undefined || message.author.id === deps.botId) break;
    // A message of somebody else that is replied to stands in the question already, as a quotation.
    if (step > 0 || message.author.id === author.id) found.unshift(message);
    place = toParent(message);
  }
  return found;
}

/** Undefined for one that was deleted. */
async function readMessage(place: MessagePlace, api: Api, signal: AbortSignal): Promise<APIMessage | undefined> {
  const route = Routes.channelMessage(place.channelId, place.messageId);
  try {
    return (await api.call({ method: "GET", route }, signal)).data as APIMessage;
  } catch (error) {
    if (codeOf(error) !== UNKNOWN_MESSAGE) throw error;
    return undefined;
  }
}

function toParent({ type, message_reference: reference, channel_id }: APIMessage): MessagePlace | undefined {
  const messageId = reference?.message_id;
  const isHere = type === MessageType.Reply && (reference?.channel_id ?? channel_id) === channel_id;
  return isHere && messageId !== undefined ? { channelId: channel_id, messageId } : undefined;
}

function toEarlier(given: APIMessage, { files, botId, rooms }: EarlierDeps & { rooms: NamedRooms }): EarlierMessage[] {
  const message = toWhole(given, botId);
  if (!isByPerson(message)) return [];
  const guildId = rooms.guildIdOf(message.channel_id);
  // The message it replies to stands above it.
  const alone = { ...message, referenced_message: null, ...(guildId !== undefined && { guild_id: guildId }) };
  const text = readText(alone, { botId, rooms }, "chain");
  const attachments = files.toRefs(message);
  if (text === "" && attachments.length === 0) return [];
  return [
    {
      messageId: toMessageId({ channelId: message.channel_id, messageId: message.id }),
      author: toAuthor(message.author, undefined),
      text,
      attachments,
      at: timeOf(message.id),
    },
  ];
}
