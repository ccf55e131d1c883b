import type { Adapter } from "../../../src/port/adapter.ts";
import { PERSON, PLATFORM, toMessageId } from "../ids.ts";
import type { LocalAdapterOptions } from "../options.ts";
import type { ChatList } from "../store/chats.ts";
import type { Messages } from "../store/messages.ts";

/** Most messages found. */
const MAX_FOUND = 50;

export interface SearchDeps extends Pick<LocalAdapterOptions, "botName"> {
  chats: Pick<ChatList, "find">;
  messages: Pick<Messages, "containing">;
}

/** Searches the chats of the page, the newest messages first. */
export function createSearch({ chats, messages, botName }: SearchDeps): NonNullable<Adapter["search"]> {
  return async ({ words }) => {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = messages.containing(wanted, MAX_FOUND).flatMap(({ id, chatId, isBot, text, createdAt }) => {
      const chat = chats.find(chatId);
      if (chat === undefined) return [];
      const authorName = isBot ? botName : PERSON.name;
      const place = { placeId: `${PLATFORM}:${chatId}`, placeName: chat.title, link: `#${chatId}` };
      return [{ messageId: toMessageId(id), ...place, authorName, text, at: createdAt }];
    });
    return { hits };
  };
}
