import { describe, expect, test } from "vitest";
import { createDirectChannels, createMemoryStore } from "../../../../adapters/discord/hear/direct-channels.ts";
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
  return { ...withTurns(store, { ...store, write }), written };
}

/** The store with its `read` and `write` replaced by `parts`, also for tasks that run in turn. */
function withTurns(store: DirectChannelStore, parts: Pick<DirectChannelStore, "read" | "write">): DirectChannelStore {
  return { ...store, ...parts, inTurn: (task) => store.inTurn(() => task(parts)) };
}

/** Resolves when all earlier changes are stored. */
function settled(store: DirectChannelStore): Promise<void> {
  return store.inTurn(async () => {});
}

describe("the list of direct conversations", () => {
  test("the list stores new direct conversations, newest first, at most a hundred", async () => {
    const kept = recordingStore(Array.from({ length: 100 }, (_, index) => String(index)));
    const directChannels = createDirectChannels(kept, signal);
    directChannels.note("5");
    directChannels.note("new");
    await settled(kept);
    expect((await directChannels.list()).slice(0, 2)).toEqual(["new", "0"]);
    expect(kept.written).toHaveLength(1);
    expect(kept.written[0]).toHaveLength(100);
  });

  test("every process knows a direct conversation that one process stored", async () => {
    const store = recordingStore();
    const processes = [1, 2, 3].map(() => createDirectChannels(store, signal));
    await Promise.all(processes.map(({ list }) => list()));
    for (const [index, { note }] of processes.entries()) note(String(index));
    await settled(store);
    for (const { list } of processes) expect((await list()).toSorted()).toEqual(["0", "1", "2"]);
  });

  test("the list stores a direct conversation later if the store was unavailable", async () => {
    const store = recordingStore();
    const { promise: kept, resolve: keep } = Promise.withResolvers<readonly string[]>();
    let failures = 2;
    const away = {
      async read() {
        if (failures-- > 0) throw new Error("down");
        return store.read();
      },
      write: async (ids: readonly string[]) => keep(ids),
    };
    const { note } = createDirectChannels(withTurns(store, away), signal);
    note("1");
    expect(await kept).toEqual(["1"]);
  });

  test("the list reads direct conversations again after the store failed", async () => {
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
