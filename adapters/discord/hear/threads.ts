import { type APIMessage, type APIThreadChannel, Routes } from "discord.js";
import type { Logger } from "pino";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { MessageEvent } from "../../../src/port/events.ts";
import { toTitle } from "../../../src/text/title.ts";
import type { Api } from "../api/client.ts";
import { codeOf } from "../api/error.ts";
import { createOptionalCalls } from "../api/optional-calls.ts";
import type { Rooms } from "../api/rooms.ts";
import { PLATFORM } from "../ids.ts";
import type { ThreadMode } from "../options.ts";
import { readCustomId, readCustomIds } from "../write/draft.ts";

const NAME_CHARS = 90;
const ARCHIVE_MINUTES = 1_440;
const OPEN_MS = 5_000;
const EXISTS = 160004;
/** How many threads can be opened at once in one channel until Discord reports its limit. */
const OPENED_AT_ONCE = 10;

export interface ThreadsDeps {
  mode: ThreadMode;
  api: Api;
  activity: Activity;
  rooms: Rooms;
  log: Logger;
}

/** Decides where to answer a question from a server channel, and opens a thread if needed. Never rejects. */
export type PlaceQuestion = (
  event: MessageEvent,
  place: { channelId: string; messageId: string },
) => Promise<MessageEvent>;

export function createPlaceQuestion({ mode, api, activity, rooms, log }: ThreadsDeps): PlaceQuestion {
  const calls = createOptionalCalls(api, { firstCalls: OPENED_AT_ONCE });

  /** Resolves to the thread's id. Undefined if the bot could not open it. */
  async function open(channelId: string, messageId: string, name: string): Promise<string | undefined> {
    // A call is skipped at the rate limit: the bot answers in the channel instead of waiting for a thread.
    const body = { name, auto_archive_duration: ARCHIVE_MINUTES };
    const call = { method: "POST" as const, route: Routes.threads(channelId, messageId), body };
    try {
      const answer = await calls.call(channelId, call, AbortSignal.timeout(OPEN_MS));
      // On Discord, a thread has the id of the message it was opened from. Servers that imitate Discord can use another
      // id.
      return answer && ((answer.data as Partial<APIThreadChannel> | undefined)?.id ?? messageId);
    } catch (error) {
      if (codeOf(error) === EXISTS) return messageId;
      log.warn({ err: error, channelId }, "Could not open a thread; the answer goes into the channel.");
      return undefined;
    }
  }

  return async (event, { channelId, messageId }) => {
    // A follow-up question stays in the place of the first one.
    const isNew = event.addressed === "bot" && event.inReplyTo === undefined;
    const isWanted = mode === "on" || (mode === "auto" && activity.isBusy(channelId));
    if (isNew && isWanted && rooms.mayOpenThread(channelId)) {
      const name = toTitle(event.text, NAME_CHARS) || `A question of ${event.author.name}`;
      const threadId = await open(channelId, messageId, name);
      if (threadId !== undefined) return toThreadEvent(event, threadId);
    }
    if (event.addressed === "bot") activity.begin(channelId, messageId);
    return event;
  };
}

function toThreadEvent(event: MessageEvent, threadId: string): MessageEvent {
  // The thread starts with the question, so the answer is not a reply to it.
  const { replyToId: _, extra: __, ...place } = event.reply;
  return { ...event, conversationId: `${PLATFORM}:${threadId}`, reply: { ...place, threadId } };
}

/** An answer without an edit for this long counts as finished. */
const QUIET_MS = 120_000;
const MAX_MESSAGES = 2_000;
const MAX_CHANNELS = 1_000;

/**
 * Knows which channels and threads have a growing answer. Recognizes the answer by its Stop button, because any process
 * can be writing it.
 */
export interface Activity {
  begin(channelId: string, root: string): void;
  see(message: Pick<APIMessage, "id" | "channel_id" | "components" | "message_reference">): void;
  /** Call this when a message was deleted. If it was the bot's, its answer no longer counts as growing. */
  forget(message: Pick<APIMessage, "id" | "channel_id">): void;
  isBusy(channelId: string): boolean;
}

export function createActivity(now: () => number): Activity {
  const growing = new Map<string, Map<string, number>>();
  /** The question that each bot message answers, because the message's last edit no longer names it. */
  const roots = new BoundedMap<string, string>(MAX_MESSAGES);

  function begin(channelId: string, root: string): void {
    const answers = growing.get(channelId) ?? new Map<string, number>();
    growing.set(channelId, answers);
    answers.set(root, now() + QUIET_MS);
    if (growing.size > MAX_CHANNELS) for (const id of growing.keys()) isBusy(id);
  }

  function isBusy(channelId: string): boolean {
    const answers = growing.get(channelId);
    if (answers === undefined) return false;
    for (const [root, until] of answers) if (until <= now()) end(channelId, root);
    return growing.has(channelId);
  }

  function end(channelId: string, root: string): void {
    const answers = growing.get(channelId);
    answers?.delete(root);
    if (answers?.size === 0) growing.delete(channelId);
  }

  return {
    begin,
    see({ id, channel_id, components, message_reference }) {
      const buttons = readCustomIds(components).flatMap((customId) => readCustomId(customId) ?? []);
      const root = buttons[0]?.root ?? roots.get(id) ?? message_reference?.message_id;
      if (root === undefined) return;
      roots.set(id, root);
      if (buttons.some(({ action }) => action === "stop")) begin(channel_id, root);
      else end(channel_id, root);
    },
    forget({ id, channel_id }) {
      const root = roots.get(id);
      roots.delete(id);
      if (root !== undefined) end(channel_id, root);
    },
    isBusy,
  };
}
