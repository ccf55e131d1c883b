import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { z } from "zod";
import { isStoreOutage } from "../store/outage.ts";
import type { RedisClient, RedisConnection } from "../store/redis-connection.ts";
import { createStoredParser } from "../store/values.ts";
import type { ErasedPerson } from "./event-lane.ts";
import type { Entry } from "./journal.ts";
import { JOURNAL_KEYS } from "./journal-scripts.ts";
import { PART_KEYS } from "./partition.ts";
import { storedEvent } from "./stored-event.ts";

/**
 * How long a read waits for entries. This is shorter than the timeout of an operation, so a read that times out means
 * that the connection is dead.
 */
const BLOCK_MS = 1_000;
/** The largest number of entries that one read returns from a partition. */
const MAX_READ = 200;
const RETRY_MS = 100;

/** How far this process has read a partition's journal. A new `Stream` starts each time it takes the partition. */
export interface Stream {
  readonly partition: number;
  /** The id of the last entry that was read. */
  position: string;
  /** For each entry, how many processes died during its work before this process took over. Undefined until loaded. */
  deaths: Map<string, number> | undefined;
  /** True if the last read was full, so more entries can follow. */
  isBehind: boolean;
}

export interface StreamsOptions {
  connection: RedisConnection;
  log: Logger;
  /** `isAtEnd` is true if no older entries are left to read. */
  onEntries(partition: number, entries: readonly Entry[], isAtEnd: boolean): void;
  /** The entry with this id requests a person's erasure. */
  onErasure(stream: Stream, id: string, person: ErasedPerson): void;
  /** Receives the previous owner's calls that count against rate limits. */
  onCalls(text: string): void;
  /** True if this process owns the partition or keeps a lane in it. */
  isRead(partition: number): boolean;
}

/**
 * Reads the journals of owned partitions. Also reads those of partitions with kept lanes, because new events can
 * interrupt the work there.
 */
export interface Streams {
  /** Reads the partition's journal from its start. */
  take(partition: number): void;
  isCurrent(stream: Stream): boolean;
  /** Reads until `close`. Never rejects. */
  read(blocking: RedisClient, wakeKey: string): Promise<void>;
  close(): void;
}

type Messages = ReadonlyArray<{ id: string; message: Record<string, string | undefined> }>;

const erasedPerson: z.ZodType<ErasedPerson> = z.object({
  platform: z.string(),
  authorId: z.string(),
  exceptKey: z.string(),
});

export function createStreams({ connection, log, ...options }: StreamsOptions): Streams {
  const { client, run } = connection;
  const parseEvent = createStoredParser(storedEvent, "palaver:parts:journal", log);
  const parsePerson = createStoredParser(erasedPerson, "palaver:parts:journal:erasure", log);
  const streams = new Map<number, Stream>();
  let isClosed = false;

  const isCurrent = (stream: Stream) => !isClosed && streams.get(stream.partition) === stream;

  async function readOnce(blocking: RedisClient, wakeKey: string, wakePosition: string): Promise<string> {
    for (const partition of streams.keys()) if (!options.isRead(partition)) streams.delete(partition);
    const asked = new Map([...streams.values()].map((stream) => [PART_KEYS.journal(stream.partition), stream]));
    const keys = [...asked].map(([key, { position: id }]) => ({ key, id }));
    const all = [{ key: wakeKey, id: wakePosition }, ...keys];
    const found = (await run(() => blocking.xRead(all, { BLOCK: BLOCK_MS, COUNT: MAX_READ }), blocking)) ?? [];
    const read = found.flatMap(({ name, messages }) => {
      const stream = asked.get(name);
      return stream === undefined ? [] : [{ stream, messages }];
    });
    await Promise.all(read.map(({ stream }) => prepare(stream)));
    for (const stream of asked.values()) {
      const { messages = [] } = read.find((one) => one.stream === stream) ?? {};
      // Skips a partition that this process lost or retook during the read, because its entries would break the order.
      if (isCurrent(stream) && (messages.length > 0 || stream.isBehind)) deliver(stream, messages);
    }
    return found.find(({ name }) => name === wakeKey)?.messages.at(-1)?.id ?? wakePosition;
  }

  /** Loads the data that the previous owner stored, before the first entry is delivered. */
  async function prepare(stream: Stream): Promise<void> {
    if (stream.deaths !== undefined) return;
    const { partition } = stream;
    const [deaths, calls] = await Promise.all([
      run(() => client.hGetAll(PART_KEYS.begun(partition))),
      run(() => client.get(JOURNAL_KEYS.calls(partition))),
    ]);
    stream.deaths = new Map(Object.entries(deaths).map(([id, count]) => [id, Number(count)]));
    if (calls !== null) options.onCalls(calls);
  }

  /** Skips unreadable events but keeps them in the journal, because another version may be able to read them. */
  function deliver(stream: Stream, messages: Messages): void {
    const { partition } = stream;
    let entries: Entry[] = [];
    for (const { id, message } of messages) {
      const { e: event, x: person } = message;
      const accepted = event === undefined ? undefined : parseEvent(event);
      const erased = person === undefined ? undefined : parsePerson(person);
      if (accepted !== undefined) {
        entries.push({ id, event: accepted, partition, deaths: stream.deaths?.get(id) ?? 0 });
      }
      if (erased !== undefined) {
        options.onEntries(partition, entries, false);
        entries = [];
        options.onErasure(stream, id, erased);
      }
    }
    stream.position = messages.at(-1)?.id ?? stream.position;
    stream.isBehind = messages.length === MAX_READ;
    options.onEntries(partition, entries, !stream.isBehind);
  }

  return {
    take: (partition) =>
      void streams.set(partition, { partition, position: "0-0", deaths: undefined, isBehind: false }),
    isCurrent,
    async read(blocking, wakeKey) {
      let wakePosition = "0-0";
      for (;;) {
        try {
          wakePosition = await readOnce(blocking, wakeKey, wakePosition);
        } catch (err) {
          if (!isClosed) log[isStoreOutage(err) ? "debug" : "error"]({ err }, "the journal could not be read");
          await sleep(RETRY_MS, undefined, { ref: false });
        }
        if (isClosed) return;
      }
    },
    close() {
      isClosed = true;
    },
  };
}
