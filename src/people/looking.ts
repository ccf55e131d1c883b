import type { Keyv } from "keyv";
import type { Logger } from "pino";
import { z } from "zod";
import type { Looking } from "../port/catalogue.ts";
import { toOwnerKey } from "../store/key-part.ts";
import type { Stores } from "../store/keyv.ts";

/** An open channel is remembered for one day, because later the person probably looks at something else. */
const KEPT_MS = 86_400_000;
/** Maximum number of channels per person. The oldest are dropped. */
const MAX_PLACES = 20;

const stored = z.object({
  places: z.array(z.object({ threadId: z.string().exactOptional(), channelId: z.string(), at: z.number() })),
});

/** A channel that a person had open next to a conversation with the bot. */
export type LookedAt = z.infer<typeof stored>["places"][number];

const NAMESPACE = "looking";

/** Stores for a day which channels a person had open. */
export interface KeptLooking extends Looking {
  exportAuthor(platform: string, authorId: string): Promise<LookedAt[]>;
}

export interface LookingOptions extends Pick<Stores, "open" | "inTurn"> {
  /** Unix milliseconds. */
  now(): number;
  log: Logger;
}

export function createLooking({ open, inTurn, now, log }: LookingOptions): KeptLooking {
  const keyv = open(NAMESPACE);

  async function load(keyv: Keyv, key: string): Promise<LookedAt[]> {
    const { data } = stored.safeParse(await keyv.get(key));
    return (data?.places ?? []).filter(({ at }) => at > now() - KEPT_MS);
  }

  return {
    async note({ platform, authorId, threadId }, channelId) {
      const key = toOwnerKey(platform, authorId);
      const place = threadId === undefined ? {} : { threadId };
      try {
        await inTurn(`looking:${key}`, async (open) => {
          const keyv = open(NAMESPACE);
          const others = (await load(keyv, key)).filter((known) => known.threadId !== threadId);
          const seen = channelId === undefined ? [] : [{ ...place, channelId, at: now() }];
          const places = [...others, ...seen].slice(-MAX_PLACES);
          if (places.length === 0) await keyv.delete(key);
          else await keyv.put({ key, value: { places }, ttlMs: KEPT_MS, owner: { platform, id: authorId } });
        });
      } catch (err) {
        log.warn({ err, platform }, "a person's open channel could not be stored");
      }
    },
    async read({ platform, authorId, threadId }) {
      try {
        const places = await load(keyv, toOwnerKey(platform, authorId));
        const at = (id: string | undefined) => places.find((known) => known.threadId === id);
        return (at(threadId) ?? at(undefined))?.channelId;
      } catch (err) {
        log.warn({ err, platform }, "a person's open channels could not be read");
        return undefined;
      }
    },
    exportAuthor: (platform, authorId) => load(keyv, toOwnerKey(platform, authorId)),
  };
}
