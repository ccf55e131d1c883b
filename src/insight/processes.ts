import type { Logger } from "pino";
import { z } from "zod";
import { parseStored } from "../store/values.ts";
import type { InsightStore } from "./insight-store.ts";
import { story } from "./story.ts";

const REPORT_MS = 1_000;
/** A process that has not reported for this long counts as stopped. */
const GONE_MS = 8_000;
const MAX_RUNNING = 200;

const report = z.object({
  v: z.literal(1),
  /** Host name and process id, as the dashboard shows them. */
  name: z.string(),
  role: z.string(),
  version: z.string(),
  /** Unix milliseconds, like the times below. */
  startedAt: z.number(),
  at: z.number(),
  memoryBytes: z.number(),
  /** 99th percentile of the event loop's delay over the last seconds, in milliseconds. */
  loopLagMs: z.number(),
  places: z.number(),
  active: z.number(),
  waiting: z.number(),
  isStoreReachable: z.boolean(),
  gateway: z.string(),
  /** The process's platforms, and whether each is connected. */
  platforms: z.record(z.string(), z.boolean()),
  /** The rate limits that pace replies. Each has its number of replies and the time until its next call. */
  budgets: z.array(z.object({ key: z.string(), replies: z.number(), nextInMs: z.number().nullable() })),
  /** Number of models that are paused after failures or at the gateway's request. */
  pausedModels: z.number().default(0),
  running: z.array(story),
});

/** A process's report about itself, written once per second. */
export type ProcessReport = z.infer<typeof report>;

export interface Processes {
  begin(): void;
  /** Resolves to the live processes, sorted by name. Rejects if the store is unavailable. */
  read(): Promise<ProcessReport[]>;
  close(): Promise<void>;
}

export interface ProcessesOptions {
  store: InsightStore;
  /** Unique among all processes. */
  id: string;
  describe(): ProcessReport | Promise<ProcessReport>;
  /** If true, no other process reads the report, so it is created only when the dashboard needs it. */
  isAlone: boolean;
  log: Logger;
}

export function createProcesses({ store, id, describe, isAlone, log }: ProcessesOptions): Processes {
  let timer: NodeJS.Timeout | undefined;
  let isTelling = false;

  async function tell(): Promise<void> {
    if (isTelling) return;
    isTelling = true;
    try {
      const current = await describe();
      await store.report(id, JSON.stringify({ ...current, running: current.running.slice(0, MAX_RUNNING) }), GONE_MS);
    } catch (err) {
      log.debug({ err }, "the report of this process could not be stored");
    } finally {
      isTelling = false;
    }
  }

  return {
    begin() {
      if (isAlone) return;
      void tell();
      timer = setInterval(() => void tell(), REPORT_MS).unref();
    },
    async read() {
      await tell();
      const reports = (await store.reports()).flatMap((text) => parseStored(report, text) ?? []);
      return reports.toSorted((one, other) => (one.name < other.name ? -1 : 1));
    },
    async close() {
      clearInterval(timer);
      await store.report(id, "{}", 0).catch(() => {});
    },
  };
}
