import type { DirectChannelStore } from "../options.ts";

const MAX_KEPT = 100;

/** The direct conversations that were used last, newest first. */
export interface DirectChannels {
  /** Somebody wrote there. Never rejects. */
  note(channelId: string): void;
  list(): Promise<readonly string[]>;
}

/** Writes only when a conversation is new: their order matters less than the disk. */
export function createDirectChannels(store: DirectChannelStore | undefined): DirectChannels {
  let known: readonly string[] | undefined;
  let tail: Promise<unknown> = Promise.resolve();

  /** Does one thing after the other, whatever became of the one before. */
  function afterwards<T>(work: () => Promise<T>): Promise<T> {
    const result = tail.then(work);
    tail = result.catch(() => {});
    return result;
  }

  async function load(): Promise<readonly string[]> {
    known ??= (await store?.read()) ?? [];
    return known;
  }

  async function add(channelId: string): Promise<void> {
    const ids = await load();
    if (ids.includes(channelId)) return;
    known = [channelId, ...ids].slice(0, MAX_KEPT);
    await store?.write(known);
  }

  return {
    // A lost note is made again when the person writes again.
    note: (channelId) => void afterwards(() => add(channelId)).catch(() => {}),
    list: () => afterwards(load),
  };
}
