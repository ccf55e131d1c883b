/** Searches the messages of a server. */
import type { APIMessage, RESTGetAPIGuildMessagesSearchResult } from "discord.js";
import { retry } from "../../../src/concurrency/retry.ts";
import type { Adapter } from "../../../src/port/adapter.ts";
import { SearchProblem } from "../../../src/port/errors.ts";
import type { SearchHit } from "../../../src/port/events.ts";
import { read } from "../api/client.ts";
import { ApiError } from "../api/error.ts";
import { askNames, type NamedRooms } from "../api/names.ts";
import { PLATFORM, timeOf, toMessageId } from "../ids.ts";
import type { EarlierDeps } from "./earlier.ts";
import { isWritten, toWhole } from "./inbound.ts";
import { toAuthor } from "./people.ts";
import { readSeen } from "./wording.ts";

/** Discord's most for one page. */
const PAGE = 25;
/** Waits for Discord to index a server that no one has searched for a while. */
const INDEX_WAITS = 2;
const LONGEST_WAIT_MS = 5_000;

const DIRECT = "Discord searches one server at a time: use `/search` in a channel of the server, or ask me there.";
const NOT_ALLOWED =
  "Discord doesn't let me search: I need the permission Read Message History on this server, and my operator must switch on Message Content Intent in the Developer Portal.";
const NOT_INDEXED = "Discord is still preparing this server for searches. Try again in a few minutes.";
const FAILED = "Discord's search isn't responding right now. Try again in a minute.";

/** Discord has not indexed the server yet. */
class NotIndexed extends Error {
  readonly waitMs: number;

  constructor(waitS: number) {
    super("Discord has not indexed the server yet.");
    this.waitMs = Math.min(LONGEST_WAIT_MS, Math.max(1, waitS) * 1_000);
  }
}

/**
 * Searches the server of the question in every channel that the bot can read.
 * https://docs.discord.com/developers/resources/message#search-guild-messages
 */
export function createSearch(deps: EarlierDeps): NonNullable<Adapter["search"]> {
  return async ({ words, cursor = "0" }, { reply }, signal) => {
    const { workspaceId: guildId } = reply;
    if (guildId === undefined) throw new SearchProblem(DIRECT);
    const query = { content: words, limit: String(PAGE), offset: cursor };
    const attempt = async () => {
      const route = `/guilds/${guildId}/messages/search` as const;
      const answer = await read<RESTGetAPIGuildMessagesSearchResult>(deps.api, route, signal, query);
      if ("retry_after" in answer) throw new NotIndexed(answer.retry_after);
      return answer;
    };
    const options = {
      pausesMs: Array<number>(INDEX_WAITS).fill(0),
      mayPass: (error: unknown) => error instanceof NotIndexed,
      askedMs: (error: unknown) => (error instanceof NotIndexed ? error.waitMs : undefined),
      isIdle: true,
    };
    const {
      messages,
      threads = [],
      total_results: total,
    } = await retry(attempt, options, signal).catch((error) => {
      signal.throwIfAborted();
      throw toProblem(error);
    });
    const found = messages.flat();
    const { botId, rooms: known } = deps.knownOf(reply);
    const texts = found.flatMap(({ content, channel_id }) => [content, `<#${channel_id}>`]);
    const rooms = known ?? (await askNames(deps.api, { guildId, botId, texts }, signal));
    const names = new Map(threads.map(({ id, name }) => [id, name]));
    const nameOf = (id: string) => names.get(id) ?? rooms.nameOfChannel(id) ?? "a channel";
    const next = Number(cursor) + PAGE;
    return {
      hits: found.flatMap((message) => toHit(message, { guildId, botId, rooms, nameOf })),
      ...(next < total && { next: String(next) }),
    };
  };
}

interface HitDeps {
  guildId: string;
  botId: string;
  rooms: NamedRooms;
  nameOf(channelId: string): string;
}

function toHit(given: Omit<APIMessage, "reactions">, { guildId, botId, rooms, nameOf }: HitDeps): SearchHit[] {
  const message = { ...toWhole(given, botId), guild_id: guildId };
  if (!isWritten(message)) return [];
  const { id: messageId, channel_id: channelId, author } = message;
  const hit = {
    messageId: toMessageId({ channelId, messageId }),
    placeId: `${PLATFORM}:${channelId}`,
    placeName: `#${nameOf(channelId)}`,
    authorName: toAuthor(author, undefined).name,
    text: readSeen(message, { rooms }),
    at: timeOf(messageId),
    link: `https://discord.com/channels/${guildId}/${channelId}/${messageId}`,
  };
  return [hit];
}

function toProblem(error: unknown): unknown {
  if (error instanceof NotIndexed) return new SearchProblem(NOT_INDEXED);
  if (!(error instanceof ApiError)) return error;
  if (error.retryAfterMs !== undefined) {
    const waitS = Math.max(1, Math.ceil(error.retryAfterMs / 1_000));
    return new SearchProblem(`I've reached Discord's search limit. Try again in ${waitS} s.`);
  }
  return new SearchProblem(error.status === 403 ? NOT_ALLOWED : FAILED);
}
