import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { z } from "zod";
import type { InboundEvent } from "../port/events.ts";
import type { RedisConnection } from "../store/redis-connection.ts";
import { evalScript } from "../store/redis-script.ts";
import { createStoredParser } from "../store/values.ts";
import { type ErasedPerson, laneOf, toErased } from "./event-lane.ts";
import type { Entry } from "./journal.ts";
import { ERASE, JOURNAL_KEYS, UNOWNED } from "./journal-scripts.ts";
import { PART_KEYS, PARTITIONS } from "./partition.ts";
import { storedEvent } from "./stored-event.ts";

/** Timeout for an erasure. It is longer than a dead process keeps its partitions. */
const FORGET_MS = 20_000;
const LOOK_MS = 50;
const ALL_PARTITIONS = Array.from({ length: PARTITIONS }, (_, partition) => partition);
const partitionNumbers = z.array(z.number());

/** Erases events in all partitions, whichever process owns them. */
export interface Erasure {
  /**
   * Asks each partition's owner to erase the person. In partitions without an owner, this process erases the person.
   * Rejects if this takes longer than `FORGET_MS`.
   */
  forget(person: ErasedPerson): Promise<void>;
  /** Erases matching entries without interrupting their running work. Resolves to the erased events. */
  erase(isErased: (event: InboundEvent) => boolean): Promise<InboundEvent[]>;
  /** Resolves to the number of entries that remain because another process still works on them. */
  eraseEntries(partition: number, entries: readonly Pick<Entry, "id" | "event">[]): Promise<number>;
}

export function createErasure({ client, run }: RedisConnection, log: Logger): Erasure {
  const parse = createStoredParser(storedEvent, "palaver:parts:journal", log);

  async function eraseEntries(partition: number, entries: readonly Pick<Entry, "id" | "event">[]): Promise<number> {
    if (entries.length === 0) return 0;
    const keys = [PART_KEYS.journal(partition), PART_KEYS.begun(partition)];
    const given = entries.flatMap(({ id, event }) => {
      const message = event.kind === "message" ? JOURNAL_KEYS.message(event.messageId) : "";
      return [id, PART_KEYS.kept(laneOf(event).id), message];
    });
    return Number(await run(() => evalScript(client, ERASE, () => ({ keys, arguments: given }))));
  }

  async function readStored(partition: number, isMeant: (event: InboundEvent) => boolean) {
    const messages = await run(() => client.xRange(PART_KEYS.journal(partition), "-", "+"));
    return messages.flatMap(({ id, message: { e: text } }) => {
      const event = text === undefined ? undefined : parse(text);
      return event !== undefined && isMeant(event) ? [{ id, event }] : [];
    });
  }

  async function eraseUnowned(left: ReadonlyMap<number, string>, person: ErasedPerson): Promise<void> {
    const given = [...left.keys()].map(String);
    const unowned = await run(() => evalScript(client, UNOWNED, () => ({ keys: [], arguments: given })));
    for (const partition of partitionNumbers.parse(unowned)) {
      const isOver = (await eraseEntries(partition, await readStored(partition, toErased(person)))) === 0;
      if (isOver) await run(() => client.xDel(PART_KEYS.journal(partition), left.get(partition) ?? ""));
    }
  }

  return {
    eraseEntries,
    async forget(person) {
      const until = performance.now() + FORGET_MS;
      const entry = { x: JSON.stringify(person) };
      const ids = await Promise.all(
        ALL_PARTITIONS.map((partition) => run(() => client.xAdd(PART_KEYS.journal(partition), "*", entry))),
      );
      const left = new Map(ids.map((id, partition) => [partition, id]));
      for (;;) {
        const look = async ([partition, id]: [number, string]) => {
          const found = await run(() => client.xRange(PART_KEYS.journal(partition), id, id));
          if (found.length === 0) left.delete(partition);
        };
        await Promise.all([...left].map(look));
        if (left.size === 0) return;
        if (performance.now() > until) throw new Error("Work for a person being erased hasn't stopped.");
        await eraseUnowned(left, person);
        await sleep(LOOK_MS);
      }
    },
    async erase(isErased) {
      const erased: InboundEvent[] = [];
      for (const partition of ALL_PARTITIONS) {
        const found = await readStored(partition, isErased);
        await eraseEntries(partition, found);
        erased.push(...found.map(({ event }) => event));
      }
      return erased;
    },
  };
}
