import type { APIMessage, APIUser, GatewayMessageCreateDispatchData } from "discord.js";
import { withoutAddress } from "../../../src/text/address.ts";
import { joinParagraphs } from "../../../src/text/join.ts";
import { toLine } from "../../../src/text/quote-name.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { picturesOf } from "../api/files.ts";
import type { Rooms } from "../api/rooms.ts";
import { readShown } from "./content.ts";

const QUOTE_CHARS = 2_000;
/** Longest quote from a message that the conversation already contains: enough to recognize it. */
const HINT_CHARS = 300;
/** A message that starts like this is a command. */
const SPOKEN_COMMAND = /^(?:!|\/?imagine\b)/i;
const SPOKEN_IMAGINE = /^[!/]?imagine\b/i;
const USER = /<@!?(\d{17,20})>/g;
const ROLE = /<@&(\d{17,20})>/g;
const CHANNEL = /<#(\d{17,20})>/g;
const EMOJI = /<a?(:\w{2,32}:)\d{17,20}>/g;

export interface Names {
  botId: string;
  rooms: Pick<Rooms, "botRoleId" | "nameOfChannel" | "nameOfRole">;
}

/**
 * The text of a message as a user reads it: with names instead of ids, and without a mention that only addresses the
 * bot. Includes cards, previews, forwards and the replied-to message, unless the conversation already contains them. In
 * a place that is `one` conversation, still quotes the start of the replied-to message, to show which message is meant.
 */
export function readText(message: Message, names: Names, place: "one" | "chain"): string {
  // Keeps a mention that is the whole message, to show whom it addresses.
  const words = withoutBot(message, names).trim() || message.content;
  const own = readOwn(message, words, names, true);
  const context = quoteAnswered(message, names, place === "one" && own !== "" && !SPOKEN_COMMAND.test(own));
  return joinParagraphs(context, own);
}

/** The text of a message as the channel shows it, with cards and previews. */
export function readSeen(message: Message, names: Pick<Names, "rooms">): string {
  return readOwn(message, message.content, names, false);
}

function readOwn(message: Message, words: string, names: Pick<Names, "rooms">, isAsked: boolean): string {
  const snapshots = [message, message.comments_on].flatMap((one) => one?.message_snapshots ?? []);
  const forwarded = snapshots.map(({ message: snapshot }) => {
    const { content, mentions } = snapshot;
    const text = toWords(joinParagraphs(content, readShown(snapshot)), { mentions, guild_id: message.guild_id }, names);
    return quote("Forwarded", text);
  });
  const shown = toWords(readShown(message, isAsked), message, names);
  return joinParagraphs(toWords(words, message, names).trim(), shown, ...forwarded);
}

/** True for an `/imagine` typed as a message. It uses nothing from the conversation around it. */
export function asksForPicture(text: string): boolean {
  return SPOKEN_IMAGINE.test(text);
}

export function firstMention(content: string): string | undefined {
  return /^\s*<@!?(\d{17,20})>/.exec(content)?.[1];
}

function quoteAnswered(message: Message, names: Names, isHinted: boolean): string {
  const answered = message.referenced_message;
  if (!answered) return "";
  const { id, global_name, username } = answered.author;
  const { guild_id } = message;
  const mentions = [...message.mentions, ...(answered.mentions ?? [])];
  const own = withoutBot({ content: answered.content, guild_id }, names);
  const forwards = (answered.message_snapshots ?? []).map(({ message: { content, ...shown } }) =>
    joinParagraphs(content, readShown(shown)),
  );
  const shown = joinParagraphs(own, readShown(answered), ...forwards);
  const words = toWords(id === names.botId ? own : shown, { mentions, guild_id }, names);
  const isOwn = id === message.author.id;
  if (!isOwn && id !== names.botId) return quote(`In reply to ${global_name ?? username}`, words);
  // Does not quote a message with images: they are attached to the question and say more than its text.
  const isShown = !isOwn && picturesOf(answered).length > 0;
  return isHinted && !isShown
    ? quote(isOwn ? "In reply to my earlier message" : "In reply to your message", words, HINT_CHARS)
    : "";
}

function quote(title: string, content: string, maxChars = QUOTE_CHARS): string {
  if (content.trim() === "") return "";
  const text = truncate(content.trim(), maxChars);
  return `${toLine(title)}:\n${text.replace(/^/gm, "> ")}`;
}

function withoutBot({ content, guild_id }: Pick<Message, "content" | "guild_id">, { botId, rooms }: Names): string {
  const roleId = rooms.botRoleId(guild_id);
  return withoutAddress(content, roleId === undefined ? `<@!?${botId}>` : `<@!?${botId}>|<@&${roleId}>`);
}

/** Leaves unknown ids unchanged. */
export function toWords(
  content: string,
  { mentions = [], guild_id }: { mentions?: readonly Mentioned[] | undefined; guild_id?: string | undefined },
  { rooms }: Pick<Names, "rooms">,
): string {
  return content
    .replace(USER, (mention, id: string) => {
      const user = mentions.find((mentioned) => mentioned.id === id);
      return user === undefined ? mention : `@${nameOf(user)}`;
    })
    .replace(ROLE, (mention, id: string) => prefix("@", rooms.nameOfRole(guild_id, id)) ?? mention)
    .replace(CHANNEL, (mention, id: string) => prefix("#", rooms.nameOfChannel(id)) ?? mention)
    .replace(EMOJI, "$1");
}

/** A mentioned user. In a message from a server, the gateway adds the member. */
type Mentioned = Pick<APIUser, "id" | "global_name" | "username"> & { member?: { nick?: string | null } };

function nameOf({ member, global_name, username }: Mentioned): string {
  return member?.nick ?? global_name ?? username;
}

function prefix(sign: string, name: string | undefined): string | undefined {
  return name === undefined ? undefined : sign + name;
}

/** A message as the gateway sends it. A message that a call returns lacks the member. */
export type Message = APIMessage &
  Partial<Pick<GatewayMessageCreateDispatchData, "guild_id" | "member" | "channel_type">> & {
    comments_on?: Message;
  };
