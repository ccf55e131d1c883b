import { describe, expect, test } from "vitest";
import { createDirectChannels, createMemoryStore } from "../../../../adapters/discord/listen/direct-channels.ts";
import type { DirectChannelStore } from "../../../../adapters/discord/options.ts";
import { signal } from "../stage.ts";

function recordingStore(kept: readonly string[] = []): DirectChannelStore & { written: Array<readonly string[]> } {
  const store = createMemoryStore();
  void store.write(kept);
  const written: Array<readonly string[]> = [];
  async function write(ids: readonly string[]): Promise<void> {
    written.push(ids);
    await store.write(ids);
  }
  return { ...store, written, write };
}

/** Resolves when everything that was noted before is kept. */
function settled(store: DirectChannelStore): Promise<void> {
  return store.inTurn(async () => {});
}

describe("direct conversations", () => {
  test("direct channels are kept when they are new, newest first, a hundred at most", async () => {
    const kept = recordingStore(Array.from({ length: 100 }, (_, index) => String(index)));
    const directChannels = createDirectChannels(kept, signal);
    directChannels.note("5");
    directChannels.note("new");
    await settled(kept);
    expect((await directChannels.list()).slice(0, 2)).toEqual(["new", "0"]);
    expect(kept.written).toHaveLength(1);
    expect(kept.written[0]).toHaveLength(100);
  });

  test("a conversation that one process noted is known to all of them", async () => {
    const store = recordingStore();
    const processes = [1, 2, 3].map(() => createDirectChannels(store, signal));
    await Promise.all(processes.map(({ list }) => list()));
    for (const [index, { note }] of processes.entries()) note(String(index));
    await settled(store);
    for (const { list } of processes) expect((await list()).toSorted()).toEqual(["0", "1", "2"]);
  });

  test("a conversation that was noted while the store was away is kept when it is back", async () => {
    const store = recordingStore();
    const { promise: kept, resolve: keep } = Promise.withResolvers<readonly string[]>();
    let failures = 2;
    const { note } = createDirectChannels(
      {
        ...store,
        async read() {
          if (failures-- > 0) throw new Error("down");
          return store.read();
        },
        write: async (ids) => keep(ids),
      },
      signal,
    );
    note("1");
    expect(await kept).toEqual(["1"]);
  });

  test("direct channels are read again after the store failed", async () => {
    let fails = true;
    const store = recordingStore(["1"]);
    const { list } = createDirectChannels(
      {
        ...store,
        async read() {
          if (fails) throw new Error("down");
          return store.read();
        },
      },
      signal,
    );
    await expect(list()).rejects.toThrow("down");
    fails = false;
    expect(await list()).toEqual(["1"]);
  });
});
