import { MessageFlags } from "discord.js";
import { createKeyedQueue } from "../../../src/concurrency/keyed-queue.ts";
import { PATIENT_PAUSES_MS, retry } from "../../../src/concurrency/retry.ts";
import { isOfGuild } from "../api/rooms.ts";
import type { DirectChannelStore } from "../options.ts";
import type { Message } from "./wording.ts";

const MAX_KEPT = 100;

/** The direct conversations that started most recently, newest first. */
export interface DirectChannels {
  /** Call this when a user wrote in a direct conversation. Never rejects. */
  note(channelId: string): void;
  /** All stored conversations, including those from other processes. Rejects if the store does not respond. */
  list(): Promise<readonly string[]>;
}

/** Writes only if a conversation is new, because an exact order is not worth a write per message. */
export function createDirectChannels(store: DirectChannelStore, signal: AbortSignal): DirectChannels {
  /** The ids in the store when it was last read. */
  let kept: readonly string[] = [];
  const underWay = new Set<string>();

  async function add(store: Pick<DirectChannelStore, "read" | "write">, channelId: string): Promise<void> {
    const ids = await store.read();
    const next = ids.includes(channelId) ? ids : [channelId, ...ids].slice(0, MAX_KEPT);
    if (next !== ids) await store.write(next);
    kept = next;
  }

  return {
    note(channelId) {
      if (kept.includes(channelId) || underWay.has(channelId)) return;
      underWay.add(channelId);
      const attempt = () => store.inTurn((held) => add(held, channelId));
      retry(attempt, { pausesMs: PATIENT_PAUSES_MS, isIdle: true }, signal)
        // Ignores a failure, because the user's next message stores the conversation again.
        .catch(() => {})
        .finally(() => underWay.delete(channelId));
    },
    async list() {
      kept = await store.read();
      return kept;
    },
  };
}

export function createMemoryStore(): DirectChannelStore {
  let ids: readonly string[] = [];
  const { run } = createKeyedQueue();
  const kept = { read: async () => ids, write: async (next: readonly string[]) => void (ids = next) };
  return { ...kept, inTurn: (task) => run("directs", () => task(kept)) };
}

/** An ephemeral message counts as direct. The bot's own messages count too, because users can reply to them. */
export function isDirect({
  guild_id: guildId,
  channel_type: type,
  flags,
}: Pick<Message, "guild_id" | "channel_type" | "flags">): boolean {
  return guildId === undefined && !isOfGuild(type) && ((flags ?? 0) & MessageFlags.Ephemeral) === 0;
}
