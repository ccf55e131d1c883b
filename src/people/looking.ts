import type { Logger } from "pino";
import { z } from "zod";
import type { Looking } from "../port/catalogue.ts";
import { toOwnerKey } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";

/** Kept for a day: by tomorrow people look at something else. */
const KEPT_MS = 86_400_000;
/** Most places kept for one person; the newest stay. */
const MAX_PLACES = 20;

const stored = z.object({
  v: z.literal(1),
  places: z.array(z.object({ threadId: z.string().exactOptional(), channelId: z.string(), at: z.number() })),
});

/** A channel that somebody looked at beside a conversation with the bot, or one thread of it. */
export type LookedAt = z.infer<typeof stored>["places"][number];

/** Remembers for a day which channels a person looked at, the newest few. */
export interface KeptLooking extends Looking {
  exportAuthor(platform: string, authorId: string): Promise<LookedAt[]>;
  forgetAuthor(platform: string, authorId: string): Promise<void>;
}

export interface LookingOptions extends Pick<Stores, "open" | "inTurn"> {
  /** Unix milliseconds. */
  now(): number;
  log: Logger;
}

export function createLooking({ open, inTurn, now, log }: LookingOptions): KeptLooking {
  const keyv = open("looking");
  const underKey = <T>(key: string, task: () => Promise<T>) => inTurn(`looking:${key}`, task);

  async function load(key: string): Promise<LookedAt[]> {
    const { data } = stored.safeParse(await keyv.get(key));
    return (data?.places ?? []).filter(({ at }) => at > now() - KEPT_MS);
  }

  return {
    async note({ platform, authorId, threadId }, channelId) {
      const key = toOwnerKey(platform, authorId);
      const place = threadId === undefined ? {} : { threadId };
      try {
        await underKey(key, async () => {
          const others = (await load(key)).filter((known) => known.threadId !== threadId);
          const seen = channelId === undefined ? [] : [{ ...place, channelId, at: now() }];
          const places = [...others, ...seen].slice(-MAX_PLACES);
          if (places.length === 0) await keyv.delete(key);
          else await keyv.set(key, { v: 1, places }, KEPT_MS);
        });
      } catch (err) {
        log.warn({ err, platform }, "the channel that a person looks at could not be kept");
      }
    },
    async read({ platform, authorId, threadId }) {
      try {
        const places = await load(toOwnerKey(platform, authorId));
        const at = (id: string | undefined) => places.find((known) => known.threadId === id);
        return (at(threadId) ?? at(undefined))?.channelId;
      } catch (err) {
        log.warn({ err, platform }, "the channels that a person looks at could not be read");
        return undefined;
      }
    },
    exportAuthor: (platform, authorId) => load(toOwnerKey(platform, authorId)),
    forgetAuthor(platform, authorId) {
      const key = toOwnerKey(platform, authorId);
      return underKey(key, async () => void (await keyv.delete(key)));
    },
  };
}
