import { mapBounded, waitAtMost } from "../concurrency/deadlines.ts";
import { createLookupCache } from "../concurrency/lookup-cache.ts";
import type { Story } from "../insight/story.ts";
import type { Adapter, PlaceNames } from "../port/adapter.ts";
import type { ReplyAddress } from "../port/events.ts";
import type { NamedStory } from "./page/wire.ts";

/** Names are cached this long, because platforms rarely rename channels. */
const FRESH_MS = 3_600_000;
const MAX_CACHED = 2_000;
/** A look-up is aborted after this time. A page shows the id after `WAIT_MS`, without waiting longer for the name. */
const LOOK_UP_MS = 5_000;
const WAIT_MS = 1_000;
/** Maximum number of look-ups per minute. Platforms limit look-ups, and handling events also needs some. */
const MAX_A_MINUTE = 20;
const MINUTE_MS = 60_000;
/** Maximum number of stories whose channels are looked up concurrently. */
const MAX_AT_ONCE = 20;

export type Place = Pick<ReplyAddress, "platform" | "channelId" | "workspaceId">;

export interface NamedPlace extends PlaceNames {
  /** For example "Example · Acme · #general". Unknown names are replaced by ids. */
  text: string;
}

/** Finds the names for ids. Never rejects. */
export interface Names {
  place(place: Place): Promise<NamedPlace>;
  /** A key for the channel's name. All channels of a platform without names share one key. */
  placeKey(place: Place): string;
  /** Asks the platform for a person's name. Resolves to undefined if the platform does not know that person. */
  person(authorId: string, place: Place): Promise<string | undefined>;
  stories(stories: readonly Story[]): Promise<NamedStory[]>;
}

export interface NamesOptions {
  /** Returns undefined if this process does not run the platform. */
  adapterOf(platform: string): Pick<Adapter, "namePlace" | "findAuthor"> | undefined;
  now(): number;
}

export function createNames({ adapterOf, now }: NamesOptions): Names {
  const cache = createLookupCache({ freshMs: FRESH_MS, maxEntries: MAX_CACHED, now });

  let minute = { startedAt: now(), lookUps: 0 };

  function mayAsk(): boolean {
    if (now() - minute.startedAt >= MINUTE_MS) minute = { startedAt: now(), lookUps: 0 };
    return ++minute.lookUps <= MAX_A_MINUTE;
  }

  function lookUp<T>(key: readonly string[], find: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const ask = async () => (mayAsk() ? find(AbortSignal.timeout(LOOK_UP_MS)).catch(() => undefined) : undefined);
    return waitAtMost(cache.get(JSON.stringify(key), ask), WAIT_MS);
  }

  /** False for platforms whose channels have no names. */
  function hasNames(platform: string): boolean {
    const adapter = adapterOf(platform);
    return adapter === undefined || adapter.namePlace !== undefined;
  }

  async function place({ platform, channelId, workspaceId = "" }: Place): Promise<NamedPlace> {
    const title = platform.charAt(0).toUpperCase() + platform.slice(1);
    if (!hasNames(platform)) return { text: title };
    const where = { channelId, ...(workspaceId !== "" && { workspaceId }) };
    const key = ["place", platform, workspaceId, channelId];
    const named = await lookUp(key, async (signal) => adapterOf(platform)?.namePlace?.(where, signal));
    const { workspace = workspaceId, channel = channelId } = named ?? {};
    return { ...named, text: [title, workspace, channel].filter(Boolean).join(" · ") };
  }

  return {
    place,
    placeKey: ({ platform, workspaceId = "", channelId }) =>
      hasNames(platform) ? JSON.stringify([platform, workspaceId, channelId]) : platform,
    person: (authorId, { platform, channelId, workspaceId = "" }) =>
      lookUp(["person", platform, workspaceId, authorId], async (signal) => {
        const where = { platform, channelId, ...(workspaceId !== "" && { workspaceId }) };
        const found = await adapterOf(platform)?.findAuthor?.(authorId, where, signal);
        return found?.name === authorId ? undefined : found?.name;
      }),
    stories: (stories) =>
      mapBounded(stories, MAX_AT_ONCE, async (story) => ({ ...story, place: (await place(story.reply)).text })),
  };
}
