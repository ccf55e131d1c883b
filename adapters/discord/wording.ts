import type { Message } from "./inbound.ts";
import type { Rooms } from "./rooms.ts";

/** Kept of a message that is only quoted, in characters. */
const QUOTE_CHARS = 2_000;
const USER = /<@!?(\d{17,20})>/g;
const ROLE = /<@&(\d{17,20})>/g;
const CHANNEL = /<#(\d{17,20})>/g;
const EMOJI = /<a?(:\w{2,32}:)\d{17,20}>/g;

/** What names things for people. */
export interface Names {
  botId: string;
  rooms: Pick<Rooms, "botRoleId" | "nameOfChannel" | "nameOfRole">;
}

/**
 * The words of a message as a person reads them: names for ids, without the mention that only addresses the bot, and
 * with what the message forwards or answers, where that is not in the conversation anyway.
 */
export function readText(message: Message, names: Names): string {
  // Nothing but a mention still says who is asked for.
  const words = withoutBot(message, names).trim() || message.content;
  const own = toWords(words, message, names).trim();
  const forwarded = (message.message_snapshots ?? []).map(({ message: { content } }) => quote("Forwarded", content));
  const answered = message.referenced_message;
  const isForeign = answered && answered.author.id !== names.botId && answered.author.id !== message.author.id;
  const context = isForeign
    ? [
        quote(
          `In answer to ${answered.author.global_name ?? answered.author.username}`,
          toWords(answered.content, message, names),
        ),
      ]
    : [];
  const stickers = (message.sticker_items ?? []).map(({ name }) => `(A sticker: ${name})`);
  return [...context, own, ...forwarded, ...stickers].filter(Boolean).join("\n\n");
}

/** The person a message begins by addressing. */
export function firstMention(content: string): string | undefined {
  return /^\s*<@!?(\d{17,20})>/.exec(content)?.[1];
}

function quote(title: string, content: string): string {
  if (content.trim() === "") return "";
  const letters = Array.from(content.trim());
  const text = letters.length > QUOTE_CHARS ? `${letters.slice(0, QUOTE_CHARS).join("")}…` : letters.join("");
  return `${title}:\n${text.replace(/^/gm, "> ")}`;
}

/** At either end the mention only addresses; in the middle of a sentence it is a word of it. */
function withoutBot({ content, guild_id }: Message, { botId, rooms }: Names): string {
  const roleId = rooms.botRoleId(guild_id);
  const ids = [`<@!?${botId}>`, ...(roleId === undefined ? [] : [`<@&${roleId}>`])].join("|");
  return content
    .replace(new RegExp(`^(?:\\s*(?:${ids})\\s*[,:、，：]?)+`), "")
    .replace(new RegExp(`(?:\\s*(?:${ids}))+\\s*$`), "");
}

function toWords(content: string, { mentions, guild_id }: Message, { rooms }: Names): string {
  return content
    .replace(USER, (mention, id: string) => {
      const user = mentions.find((mentioned) => mentioned.id === id);
      return user === undefined ? mention : `@${user.global_name ?? user.username}`;
    })
    .replace(ROLE, (mention, id: string) => prefix("@", rooms.nameOfRole(guild_id, id)) ?? mention)
    .replace(CHANNEL, (mention, id: string) => prefix("#", rooms.nameOfChannel(id)) ?? mention)
    .replace(EMOJI, "$1");
}

function prefix(sign: string, name: string | undefined): string | undefined {
  return name === undefined ? undefined : sign + name;
}
