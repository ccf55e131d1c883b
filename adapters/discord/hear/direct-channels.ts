import { MessageFlags } from "discord.js";
import { createKeyedQueue } from "../../../src/concurrency/keyed-queue.ts";
import { PATIENT_PAUSES_MS, retry } from "../../../src/concurrency/retry.ts";
import { isOfGuild } from "../api/rooms.ts";
import type { DirectChannelStore } from "../options.ts";
import type { Message } from "./wording.ts";

const MAX_KEPT = 100;

/** The direct conversations that began last, newest first. */
export interface DirectChannels {
  /** Somebody wrote there. Never rejects. */
  note(channelId: string): void;
  /** All that are kept, also those that other processes have heard of. Rejects when the store does not answer. */
  list(): Promise<readonly string[]>;
}

/** Writes only when a conversation is new: their order matters less than the disk. */
export function createDirectChannels(store: DirectChannelStore, signal: AbortSignal): DirectChannels {
  /** The ids in the store when it was last read. */
  let kept: readonly string[] = [];
  const underWay = new Set<string>();

  async function add(channelId: string): Promise<void> {
    const ids = await store.read();
    const next = ids.includes(channelId) ? ids : [channelId, ...ids].slice(0, MAX_KEPT);
    if (next !== ids) await store.write(next);
    kept = next;
  }

  return {
    note(channelId) {
      if (kept.includes(channelId) || underWay.has(channelId)) return;
      underWay.add(channelId);
      const attempt = () => store.inTurn(() => add(channelId));
      retry(attempt, { pausesMs: PATIENT_PAUSES_MS, isIdle: true }, signal)
        // A lost note is made again when the person writes again.
        .catch(() => {})
        .finally(() => underWay.delete(channelId));
    },
    async list() {
      kept = await store.read();
      return kept;
    },
  };
}

/** Lasts as long as the process. */
export function createMemoryStore(): DirectChannelStore {
  let ids: readonly string[] = [];
  const { run } = createKeyedQueue();
  return {
    read: async () => ids,
    write: async (next) => void (ids = next),
    inTurn: (task) => run("directs", task),
  };
}

/** An ephemeral message arrives as if it were direct. The bot's own messages count, since people may answer them. */
export function isDirect({
  guild_id: guildId,
  channel_type: type,
  flags,
}: Pick<Message, "guild_id" | "channel_type" | "flags">): boolean {
  return guildId === undefined && !isOfGuild(type) && ((flags ?? 0) & MessageFlags.Ephemeral) === 0;
}
