import { Routes } from "discord.js";
import type { Logger } from "pino";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import type { MessageEvent } from "../../../src/port/events.ts";
import { toTitle } from "../../../src/text/title.ts";
import type { Api } from "../api/client.ts";
import { ApiError, codeOf } from "../api/error.ts";
import type { Rooms } from "../api/rooms.ts";
import { PLATFORM } from "../ids.ts";
import type { ThreadMode } from "../options.ts";
import type { Activity } from "./activity.ts";

const NAME_CHARS = 90;
const ARCHIVE_MINUTES = 1_440;
const OPEN_MS = 5_000;
const EXISTS = 160004;
const MAX_CHANNELS = 1_000;

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
  /** Until when no more threads may be opened in a channel; as `performance.now` counts. */
  const closedUntil = new BoundedMap<string, number>(MAX_CHANNELS);

  function close(channelId: string, waitMs: number): void {
    closedUntil.set(channelId, performance.now() + waitMs);
  }

  async function open(channelId: string, messageId: string, name: string): Promise<boolean> {
    // A question does not wait for its thread: it is answered in the channel.
    if ((closedUntil.get(channelId) ?? 0) > performance.now()) return false;
    const body = { name, auto_archive_duration: ARCHIVE_MINUTES };
    const call = { method: "POST" as const, route: Routes.threads(channelId, messageId), body };
    try {
      const { budget } = await api.call(call, AbortSignal.timeout(OPEN_MS));
      if (budget !== undefined && budget.remaining < 1) close(channelId, budget.resetAfterMs);
      return true;
    } catch (error) {
      if (codeOf(error) === EXISTS) return true;
      if (error instanceof ApiError && error.retryAfterMs !== undefined) close(channelId, error.retryAfterMs);
      log.warn({ err: error, channelId }, "A thread could not be opened; the answer stands in the channel.");
      return false;
    }
  }

  return async (event, { channelId, messageId }) => {
    // A follow-up stays where its answer stands.
    const isNew = event.addressed === "bot" && event.inReplyTo === undefined;
    const isWanted = mode === "on" || (mode === "auto" && activity.isBusy(channelId));
    if (
      isNew &&
      isWanted &&
      rooms.mayOpenThread(channelId) &&
      (await open(channelId, messageId, toTitle(event.text, NAME_CHARS) || `A question of ${event.author.name}`))
    ) {
      // A thread has the id of the message it was opened from.
      return toThreadEvent(event, channelId, messageId);
    }
    if (event.addressed === "bot") activity.begin(channelId, messageId);
    return event;
  };
}

function toThreadEvent(event: MessageEvent, channelId: string, threadId: string): MessageEvent {
  const { workspaceId } = event.reply;
  const reply = { platform: PLATFORM, channelId, threadId, ...(workspaceId !== undefined && { workspaceId }) };
  return { ...event, conversationId: `${PLATFORM}:${threadId}`, reply };
}
