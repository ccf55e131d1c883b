import type { Logger } from "pino";
import { z } from "zod";
import { parseStored } from "../store/values.ts";
import type { InsightStore } from "./insight-store.ts";
import { story } from "./story.ts";

const REPORT_MS = 1_000;
/** A process without a report for this long counts as stopped. */
const GONE_MS = 8_000;
/** Maximum number of running turns in one report. */
const MAX_RUNNING = 200;

const report = z.object({
  v: z.literal(1),
  /** The process's name on the dashboard: host and process id. */
  name: z.string(),
  role: z.string(),
  version: z.string(),
  /** Unix milliseconds; so are the times below. */
  startedAt: z.number(),
  at: z.number(),
  memoryBytes: z.number(),
  /** 99th percentile of the event loop's delay in the last seconds, in milliseconds. */
  loopLagMs: z.number(),
  places: z.number(),
  active: z.number(),
  waiting: z.number(),
  isStoreReachable: z.boolean(),
  gateway: z.string(),
  /** The platforms that the process runs, and whether each is connected. */
  platforms: z.record(z.string(), z.boolean()),
  /** Rate limits that pace replies: the number of replies under each limit, and the wait until the next call. */
  budgets: z.array(z.object({ key: z.string(), replies: z.number(), nextInMs: z.number().nullable() })),
  /** Models that are paused, because they failed or asked for it. */
  pausedModels: z.number().default(0),
  running: z.array(story),
});

/** Each process reports this about itself once per second. */
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
  /** If true, no other process reads reports, so the report is created only when it is read. */
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
