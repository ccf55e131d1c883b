import { z } from "zod";
import { BoundedMap } from "../../../src/concurrency/bounded-map.ts";
import { readText, toBody } from "../api/wire.ts";

const MAX_REMEMBERED = 1_000;

/** A conversation with the bot alone, or one thread of it. */
export interface DirectPlace {
  teamId: string;
  channelId: string;
  threadTs?: string | undefined;
}

/**
 * The channels that people look at beside their conversation with the bot. A message of the newer agent view says so
 * itself; what else Slack tells is remembered by the process that hears it, and is gone with it.
 */
export interface Looking {
  /** Takes in what an event tells of a conversation. */
  note(place: DirectPlace, context: unknown): void;
  /** The channel beside a message, by its own context where it has one. */
  at(place: DirectPlace, context: unknown): string | undefined;
}

export function createLooking(): Looking {
  const known = new BoundedMap<string, string>(MAX_REMEMBERED);
  const toKey = ({ teamId, channelId, threadTs = "" }: DirectPlace) => [teamId, channelId, threadTs].join(":");

  return {
    note(place, context) {
      const channelId = readLookedAt(context);
      if (channelId === undefined) known.delete(toKey(place));
      else known.set(toKey(place), channelId);
    },
    at(place, context) {
      if (context !== undefined && context !== null) return readLookedAt(context);
      return known.get(toKey(place)) ?? known.get(toKey({ ...place, threadTs: undefined }));
    },
  };
}

const told = z.object({
  /** Of the older assistant: https://docs.slack.dev/reference/events/assistant_thread_context_changed */
  channel_id: z.string().optional(),
  /** By relevance: https://docs.slack.dev/reference/events/app_context_changed */
  entities: z.array(z.object({ type: z.string(), value: z.unknown() })).default([]),
});

/** The channel that somebody looks at, as Slack tells of it. */
export function readLookedAt(context: unknown): string | undefined {
  const { channel_id: channelId, entities = [] } = told.safeParse(context).data ?? {};
  const found = entities.map(({ type, value }) => {
    if (type === "slack#/types/channel_id") return value;
    return type === "slack#/types/message_context" ? toBody(value)["channel_id"] : undefined;
  });
  return [channelId, ...found].map(readText).find((id) => id !== undefined);
}
