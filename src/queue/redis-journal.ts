import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { z } from "zod";
import { BoundedMap } from "../concurrency/bounded-map.ts";
import type { InboundEvent } from "../port/events.ts";
import { toDeletionKey } from "../port/ids.ts";
import { type Fence, FencedError } from "../port/right.ts";
import { hearChannel } from "../store/redis-channel.ts";
import { createListeningClient, type RedisClient, type RedisConnection } from "../store/redis-connection.ts";
import { evalScript } from "../store/redis-script.ts";
import { createStoredParser } from "../store/values.ts";
import type { ErasedPerson } from "./event-lane.ts";
import { noteGivenUp } from "./given-up.ts";
import type { Entry, Journal, JournalReader, LaneName, LaneRight, Start } from "./journal.ts";
import { ACCEPT, BEGIN, COUNT_ANEW, JOURNAL_KEYS, SETTLE, UNCOUNT } from "./journal-scripts.ts";
import { PART_KEYS, partitionOf } from "./partition.ts";
import { createPartitions, type Partitions, type PartitionsOptions } from "./partitions.ts";
import { createErasure } from "./redis-erasure.ts";
import { createStreams, type Stream } from "./redis-streams.ts";
import { storedEvent } from "./stored-event.ts";

/** How long an event's key stays claimed. Platforms can deliver an event again after a day. */
const CLAIM_TTL_MS = 48 * 3_600_000;
/** How long a partition's calls are stored for its next owner. No known rate limit counts a call for longer. */
const CALLS_MS = 90_000;
/**
 * How many recently used rate limits to remember for each partition. On Discord, each command has its own rate limit.
 */
const MAX_BUDGETS = 100;
const RETRY_MS = 100;
const MAX_CLAIMED = 1_000;

/** The calls that count against rate limits. A partition's next owner continues the list of the previous owner. */
export interface CallHistory {
  /** Names the rate limit for replies to this event. */
  budgetOf(event: InboundEvent): string | undefined;
  /** Describes the calls against these rate limits, for the next owner. Undefined if there were no calls. */
  describe(budgets: ReadonlySet<string>): string | undefined;
  recall(text: string): void;
}

export interface RedisJournalOptions {
  connection: RedisConnection;
  /** How many conversations this process handles at once. */
  places: number;
  calls?: CallHistory | undefined;
  log: Logger;
}

const started = z.union([
  z.tuple([z.enum(["fenced", "kept"])]),
  z.tuple([z.literal("gone")], z.string()),
  z.tuple([z.literal("started"), z.enum(["0", "1"]), z.string()]),
]);

/**
 * The journal of all processes on one Redis, with one stream per partition. Taking a partition, reconnecting and
 * receiving new events all use the same read, so no event can be missed.
 */
export function createRedisJournal({ connection, places, calls, log }: RedisJournalOptions): Journal {
  const { client, run } = connection;
  const erasure = createErasure(connection, log);
  const budgets = createBudgets(calls, log);
  let reader: JournalReader | undefined;
  let partitions: Partitions | undefined;
  let blocking: RedisClient | undefined;
  const streams = createStreams({
    connection,
    log,
    onEntries: (...read) => reader?.onEntries(...read),
    onErasure: (stream, id, person) => void eraseOwn(stream, id, person),
    onCalls: (text) => calls?.recall(text),
    isRead: (partition) => partitions?.isHeld(partition) === true,
  });
  const rights = createRights(connection, () => partitions);

  /**
   * Erases a person in an owned partition. Erases the request for the erasure last, so that the next owner continues if
   * this process dies.
   */
  async function eraseOwn(stream: Stream, id: string, person: ErasedPerson): Promise<void> {
    const { partition } = stream;
    const right = partitions?.rightOf(partition, "");
    const dropped = (await reader?.onErase(partition, person)) ?? [];
    if (right === undefined) return;
    while (streams.isCurrent(stream)) {
      try {
        const isOver = (await erasure.eraseEntries(partition, dropped)) === 0;
        if (isOver) return void (await rights.end(SETTLE, right, { id: "", partition }, [id]));
      } catch (err) {
        log.warn({ err }, "a person could not be erased from the journal; retrying");
      }
      await sleep(RETRY_MS, undefined, { ref: false });
    }
  }

  const ownership: Omit<PartitionsOptions, "connection" | "places" | "log"> = {
    onTaken(partition) {
      streams.take(partition);
      reader?.onTaken(partition);
    },
    onGiving(partition) {
      const kept = reader?.onGiving(partition) ?? [];
      const told = budgets.leave(partition);
      const options = { expiration: { type: "PX", value: CALLS_MS } } as const;
      // Stores the calls before the partition is released, so that the next owner finds them.
      if (told !== undefined) client.set(JOURNAL_KEYS.calls(partition), told, options).catch(noop);
      return kept;
    },
    onLost(partition) {
      budgets.leave(partition);
      reader?.onLost(partition);
    },
    onKeptLost: (laneId) => reader?.onLaneLost(laneId),
    onFreed: (laneId) => reader?.onLaneFreed(laneId),
    running: (partition) => reader?.running(partition) ?? 0,
  };

  return {
    ...erasure,
    accept: createAccept(connection),
    open(newReader) {
      reader = newReader;
    },
    async start(works) {
      partitions = createPartitions({ connection, places: works ? places : 0, log, ...ownership });
      await partitions.start();
      if (!works) return;
      blocking = createListeningClient(connection);
      blocking.connect().catch(noop);
      void streams.read(blocking, partitions.wakeKey);
      const parse = createStoredParser(storedEvent, JOURNAL_KEYS.told, log);
      const channel = { client: partitions.listening, channel: JOURNAL_KEYS.told, parse, log };
      await hearChannel(channel, (event) => reader?.onTold(event));
    },
    async begin(lane, entries) {
      const [first] = entries;
      if (first !== undefined) budgets.note(lane.partition, first.event);
      return rights.begin(lane, entries);
    },
    conversationOf: async (messageId) => (await run(() => client.get(JOURNAL_KEYS.message(messageId)))) ?? undefined,
    async tell(event) {
      await run(() => client.publish(JOURNAL_KEYS.told, JSON.stringify(event)));
    },
    noteGivenUp: (event) => run(() => noteGivenUp(client, event)),
    places: (own) => Math.max(own, (partitions?.placesOfAll() ?? 0) - (partitions?.runningElsewhere() ?? 0)),
    processes: () => partitions?.processes() ?? 1,
    handOver: async () => partitions?.leave(),
    async close() {
      streams.close();
      if (blocking?.isOpen === true) blocking.destroy();
      await partitions?.close();
    },
  };
}

function createAccept({ client, run }: RedisConnection): Journal["accept"] {
  /**
   * The keys of recently claimed events. They save calls, because Slack delivers a mention twice within milliseconds.
   */
  const claimed = new BoundedMap<string, true>(MAX_CLAIMED);
  return async (event) => {
    if (claimed.has(event.key)) return false;
    const keys = [JOURNAL_KEYS.claim(event.key), PART_KEYS.journal(partitionOf(event.conversationId))];
    if (event.kind === "message") keys.push(...toMessageKeys(event), JOURNAL_KEYS.claim(toDeletionKey(event.key)));
    const given = [String(CLAIM_TTL_MS), JSON.stringify(event), event.conversationId];
    const isNew = (await run(() => evalScript(client, ACCEPT, () => ({ keys, arguments: given })))) === 1;
    claimed.set(event.key, true);
    return isNew;
  };
}

/** Starts and ends work on lanes. Each change needs the right to the lane. */
function createRights({ client, run }: RedisConnection, partitions: () => Partitions | undefined) {
  /**
   * Runs a script that ends work, and frees a lane whose partition was given away. Returns false if the right is lost.
   */
  async function end(
    script: string,
    right: Fence,
    { id: laneId, partition }: LaneName,
    entries: readonly string[],
    messages: readonly string[] = [],
  ): Promise<boolean> {
    for (;;) {
      let key = "";
      const read = () => {
        key = right.key;
        const keys = [key, PART_KEYS.journal(partition), PART_KEYS.begun(partition), ...messages];
        return { keys, arguments: [right.value, key === PART_KEYS.kept(laneId) ? laneId : "", ...entries] };
      };
      const hasEnded = (await run(() => evalScript(client, script, read))) === 1;
      // Repeats the script if the right was renamed while the script ran.
      if (!hasEnded && key !== right.key) continue;
      if (hasEnded) partitions()?.forgetKept(laneId);
      return hasEnded;
    }
  }

  /** Takes back the start of aborted work. If the call does not reach Redis, the lane's mark expires. */
  async function uncount(right: Fence, lane: LaneName, entries: readonly string[]): Promise<void> {
    try {
      await end(UNCOUNT, right, lane, entries);
    } finally {
      partitions()?.forgetKept(lane.id);
    }
  }

  function createRight(lane: LaneName, held: Fence, first: string, isResumed: boolean): LaneRight {
    let isRevoked = false;
    const fence: Fence = {
      get key() {
        return held.key;
      },
      value: held.value,
      covers: (name) => held.covers?.(name) === true,
      async check() {
        if (isRevoked) throw new FencedError("The queue no longer waits for this work, and others may do it.");
        await held.check();
      },
    };
    return {
      held: { fences: [fence], isResumed },
      async settle(done) {
        const messages = done.flatMap(({ event }) => toMessageKeys(event));
        const entries = done.map(({ id }) => id);
        if (await end(SETTLE, held, lane, entries, messages)) return;
        throw new FencedError("Another process works on this lane.");
      },
      uncount: () => uncount(held, lane, [first]),
      async countAnew() {
        const keys = [PART_KEYS.begun(lane.partition)];
        await run(() => evalScript(client, COUNT_ANEW, () => ({ keys, arguments: [first] })));
      },
      revoke() {
        isRevoked = true;
      },
    };
  }

  async function begin(held: Fence, lane: LaneName, entries: readonly Entry[]): Promise<Start> {
    const [first = ""] = entries.map(({ id }) => id);
    const { id, partition } = lane;
    const keys = [PART_KEYS.owner(partition), PART_KEYS.kept(id), PART_KEYS.journal(partition)];
    keys.push(PART_KEYS.begun(partition));
    const given = [held.value, ...entries.map(({ id }) => id)];
    const answer = started.parse(await run(() => evalScript(client, BEGIN, () => ({ keys, arguments: given }))));
    const [type, known, deaths] = answer;
    if (type === "gone") return { type, entries: entries.filter((entry) => answer.some((gone) => gone === entry.id)) };
    if (type !== "started") return { type };
    return { type, right: createRight(lane, held, first, known === "1"), deaths: Number(deaths) };
  }

  return {
    end,
    async begin(lane: LaneName, entries: readonly Entry[]): Promise<Start> {
      const held = partitions()?.rightOf(lane.partition, lane.id);
      if (held === undefined) return { type: "fenced" };
      let start: Start | undefined;
      try {
        return (start = await begin(held, lane, entries));
      } finally {
        // If the partition was given away during a start that failed, frees the lane, because it has no work here.
        const isListed = held.key === PART_KEYS.kept(lane.id);
        if (start?.type !== "started" && isListed) await uncount(held, lane, []);
      }
    },
  };
}

/** Remembers which rate limits each partition's work used recently. */
function createBudgets(calls: CallHistory | undefined, log: Logger) {
  const budgets = new Map<number, Set<string>>();
  return {
    note(partition: number, event: InboundEvent): void {
      try {
        const budget = calls?.budgetOf(event);
        if (budget === undefined) return;
        const used = budgets.get(partition) ?? new Set();
        budgets.set(partition, used);
        used.delete(budget);
        used.add(budget);
        const [oldest = ""] = used;
        if (used.size > MAX_BUDGETS) used.delete(oldest);
      } catch (err) {
        // If no adapter handles this event, the work fails too, and the queue gives it up.
        log.warn({ err, key: event.key }, "the rate limit of an event could not be read");
      }
    },
    /** Describes a partition's calls for the next owner, and forgets them. */
    leave(partition: number): string | undefined {
      const told = calls?.describe(budgets.get(partition) ?? new Set());
      budgets.delete(partition);
      return told;
    },
  };
}

function toMessageKeys(event: InboundEvent): string[] {
  return event.kind === "message" ? [JOURNAL_KEYS.message(event.messageId)] : [];
}

function noop(): void {}
