import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { z } from "zod";
import { hearChannel } from "../../store/redis-channel.ts";
import { createListeningClient, type RedisConnection } from "../../store/redis-connection.ts";
import { createStoredParser } from "../../store/values.ts";
import { isErasedWith, laneOf, toErased } from "../event-lane.ts";
import type { Worker } from "../queue.ts";
import { storedEvent } from "../stored-event.ts";
import { KEYS } from "./keys.ts";
import type { RedisLanes } from "./lanes.ts";
import type { Run } from "./run.ts";

const authorErasure = z.object({
  erased: z.object({ platform: z.string(), authorId: z.string(), exceptKey: z.string() }),
});
const notice = z.union([authorErasure, storedEvent]);

/** A notice to every process that a person is erased. */
export type AuthorErasure = z.infer<typeof authorErasure>;

/** Hears what is accepted and erased anywhere, for what runs here. */
export interface Ear {
  /** Resolves when nothing is missed any more. Without a worker it hears nothing, and is a sign of life alone. */
  open(worker: Worker | undefined): Promise<void>;
  close(): void;
}

const AGAIN_MS = 500;

export interface EarOptions {
  connection: RedisConnection;
  workerId: string;
  lanes: Pick<RedisLanes, "read">;
  running: ReadonlyMap<string, Run>;
  log: Logger;
}

export function createEar({ connection, workerId, lanes, running, log }: EarOptions): Ear {
  const subscriber = createListeningClient(connection);
  const parse = createStoredParser(notice, KEYS.channel, log);

  function onTold(told: z.infer<typeof notice>, text: string, worker: Worker): void {
    if ("erased" in told) {
      const isTheirs = toErased(told.erased);
      for (const run of running.values()) run.erase((event) => isErasedWith(event) && isTheirs(event));
      return;
    }
    running.get(laneOf(told).id)?.hear({ event: told, raw: text });
    worker.onAccepted(told);
  }

  /** Reads from the lanes the events that were announced while nobody listened here. */
  async function catchUp(worker: Worker): Promise<void> {
    try {
      for (const [laneId, run] of running) {
        for (const stored of await lanes.read(laneId)) if (run.hear(stored)) worker.onAccepted(stored.event);
      }
    } catch (err) {
      log.warn({ err }, "events announced while the connection was lost could not be read");
    }
  }

  /** Redis may go away just then. */
  async function subscribe(worker: Worker | undefined): Promise<void> {
    for (;;) {
      try {
        // Nothing is ever told there: that somebody listens says that this process lives.
        await subscriber.subscribe(KEYS.alive(workerId), noop);
        if (worker === undefined) return;
        const channel = { client: subscriber, channel: KEYS.channel, parse, log };
        return await hearChannel(channel, (told, text) => onTold(told, text, worker));
      } catch (err) {
        if (!subscriber.isOpen) throw err;
        log.debug({ err }, "events accepted by other processes are not heard yet; this is tried again");
        await sleep(AGAIN_MS, undefined, { ref: false });
      }
    }
  }

  return {
    async open(worker) {
      await subscriber.connect();
      await subscribe(worker);
      // Only after the first time: the connection was lost, and is there again.
      if (worker !== undefined) subscriber.on("ready", () => void catchUp(worker));
    },
    close() {
      if (subscriber.isOpen) subscriber.destroy();
    },
  };
}

function noop(): void {}
