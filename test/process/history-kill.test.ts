import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { PROCESS_ENV } from "../../lab/support/service.ts";
import { createHistory } from "../../src/history/history.ts";
import type { HistoryEntry } from "../../src/history/record.ts";
import { NO_RIGHT } from "../../src/port/right.ts";
import { openDatabase } from "../../src/store/database.ts";
import { createStores } from "../../src/store/keyv.ts";

const ROUNDS = 8;
const WRITER = new URL("../support/history-writer.ts", import.meta.url).pathname;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "palaver-history-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("a history in a process that is killed", () => {
  test(`a history keeps every acknowledged entry whole and in order over ${ROUNDS} kills at random moments`, async () => {
    const path = join(folder, "p.sqlite");
    const acknowledged = new Map<string, string[]>();
    for (let round = 0; round < ROUNDS; round++) {
      // Some processes are killed before the first acknowledgement.
      await writeUntilKilled(path, round, Math.floor(Math.random() * 60), acknowledged);
      await checkEverything(path, acknowledged);
    }
    expect([...acknowledged.values()].flat().length).toBeGreaterThan(ROUNDS);
  });
});

async function writeUntilKilled(path: string, round: number, lines: number, acknowledged: Map<string, string[]>) {
  const child = spawn(process.execPath, [WRITER, path, String(round)], {
    env: PROCESS_ENV,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exit = once(child, "exit");
  let left = lines;
  // Lines that were in transit when the process died were acknowledged too, so this reads to the end.
  for await (const line of createInterface({ input: child.stdout })) {
    const [conversation = "", id] = line.split(" ");
    if (id !== undefined) acknowledged.set(conversation, [...(acknowledged.get(conversation) ?? []), id]);
    if (left-- === 0) setTimeout(() => child.kill("SIGKILL"), Math.random() * 4);
  }
  expect((await exit)[1]).toBe("SIGKILL");
}

async function checkEverything(path: string, acknowledged: Map<string, string[]>): Promise<void> {
  using database = openDatabase(path);
  expect(database.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
  const stores = createStores({ redisUrl: undefined, database, log: silent }, NO_RIGHT);
  const history = createHistory({ ...stores, ttlMs: 3_600_000, log: silent, now: Date.now });
  for (const [conversation, ids] of acknowledged) {
    const { entries } = await history.read(conversation, { maxEntries: 1_000_000 });
    const stored = entries.map(({ id }) => id);
    // In between there can be an entry that was stored just before the process died without reporting it.
    const known = new Set(ids);
    expect(stored.filter((id) => known.has(id))).toEqual(ids);
    for (const entry of entries) expect(isWhole(entry)).toBe(true);
    for (const { id, messages } of entries) {
      const found = { conversationId: conversation, entryId: id };
      expect(await history.find(id)).toEqual(found);
      if (messages.length === 3) expect(await history.find(`${id.slice(0, -1)}p1`)).toEqual(found);
    }
    const { conversations } = await history.exportAuthor("test", conversation);
    expect(conversations).toEqual([{ conversationId: conversation, entries }]);
  }
  checkNoHalves(database.prepare("SELECT key, value FROM keyv").all() as unknown as Row[]);
  await stores.close();
}

interface Row {
  key: string;
  value: string;
}

/** Every pointer leads to an entry, and every entry is between the two ends in its conversation's head. */
function checkNoHalves(rows: Row[]): void {
  const values = new Map(rows.map(({ key, value }) => [key, (JSON.parse(value) as { value: never }).value]));
  for (const [key, value] of values) {
    const [, kind, conversation] = key.split(":");
    if (kind === "i" || kind === "a") {
      const { conversationId, seq } = value as { conversationId: string; seq: number };
      expect(values.has(`history:e:${conversationId}:${seq}`)).toBe(true);
    }
    if (kind === "e") {
      const { first, last } = (values.get(`history:h:${conversation}`) ?? {}) as { first: number; last: number };
      const seq = Number(key.split(":").at(-1));
      expect(seq >= first && seq <= last).toBe(true);
    }
  }
}

function isWhole({ messages }: HistoryEntry): boolean {
  const roles = messages.map(({ role }) => role).join(" ");
  return roles === "user" || roles === "assistant tool assistant";
}
