import { type APIThreadChannel, Routes } from "discord.js";
import type { Logger } from "pino";
import type { MessageEvent } from "../../../src/port/events.ts";
import { toTitle } from "../../../src/text/title.ts";
import type { Api } from "../api/client.ts";
import { codeOf } from "../api/error.ts";
import { createOptionalCalls } from "../api/optional-calls.ts";
import type { Rooms } from "../api/rooms.ts";
import { PLATFORM } from "../ids.ts";
import type { ThreadMode } from "../options.ts";
import type { Activity } from "./activity.ts";

const NAME_CHARS = 90;
const ARCHIVE_MINUTES = 1_440;
const OPEN_MS = 5_000;
const EXISTS = 160004;
/** Threads opened at once in one channel, while Discord has not said how many there may be. */
const OPENED_AT_ONCE = 10;

export interface ThreadsDeps {
  mode: ThreadMode;
  api: Api;
  activity: Activity;
  rooms: Rooms;
  log: Logger;
}

/** Decides where a question asked in a guild channel is answered, and opens the thread when it is one. Never rejects. */
export type PlaceQuestion = (
  event: MessageEvent,
  place: { channelId: string; messageId: string },
) => Promise<MessageEvent>;

export function createPlaceQuestion({ mode, api, activity, rooms, log }: ThreadsDeps): PlaceQuestion {
  const calls = createOptionalCalls(api, { firstCalls: OPENED_AT_ONCE });

  /** Resolves to the thread's id; undefined where there is none. */
  async function open(channelId: string, messageId: string, name: string): Promise<string | undefined> {
    // A question does not wait for its thread: it is answered in the channel.
    const body = { name, auto_archive_duration: ARCHIVE_MINUTES };
    const call = { method: "POST" as const, route: Routes.threads(channelId, messageId), body };
    try {
      const answer = await calls.call(channelId, call, AbortSignal.timeout(OPEN_MS));
      // Discord gives it the id of the message it was opened from; others have been seen to give it one of its own.
      return answer && ((answer.data as Partial<APIThreadChannel> | undefined)?.id ?? messageId);
    } catch (error) {
      if (codeOf(error) === EXISTS) return messageId;
      log.warn({ err: error, channelId }, "A thread could not be opened; the answer stands in the channel.");
      return undefined;
    }
  }

  return async (event, { channelId, messageId }) => {
    // A follow-up stays where its answer stands.
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
  // The thread begins with the question: nothing there has to point at it.
  const { replyToId: _, extra: __, ...place } = event.reply;
  return { ...event, conversationId: `${PLATFORM}:${threadId}`, reply: { ...place, threadId } };
}
