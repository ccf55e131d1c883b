import type { Logger } from "pino";
import { z } from "zod";
import { parseStored } from "../store/values.ts";
import type { InsightStore } from "./insight-store.ts";
import { story } from "./story.ts";

const REPORT_MS = 1_000;
/** A process that has reported nothing for this long counts as gone. */
const GONE_MS = 8_000;
/** Running turns that one process tells of. */
const MAX_RUNNING = 200;

const report = z.object({
  v: z.literal(1),
  /** Its name on the dashboard: the host and the process id. */
  name: z.string(),
  role: z.string(),
  version: z.string(),
  /** Unix milliseconds, here and below. */
  startedAt: z.number(),
  at: z.number(),
  memoryBytes: z.number(),
  /** The event loop's delay, in milliseconds, at its 99th percentile of the last seconds. */
  loopLagMs: z.number(),
  places: z.number(),
  active: z.number(),
  waiting: z.number(),
  isStoreReachable: z.boolean(),
  gateway: z.string(),
  /** Platforms that it hears, and if it is connected. */
  platforms: z.record(z.string(), z.boolean()),
  /** Limits of platforms by which replies are paced: how many write under each, and how long until the next call. */
  budgets: z.array(z.object({ key: z.string(), replies: z.number(), nextInMs: z.number().nullable() })),
  /** Gateways and models that are not asked at the moment, or are on trial. */
  breakers: z.array(z.object({ name: z.string(), state: z.string() })),
  running: z.array(story),
});

/** A process reports this about itself every second. */
export type ProcessReport = z.infer<typeof report>;

export interface Processes {
  begin(): void;
  /** The live processes, in the order of their names. Rejects when the store does not answer. */
  read(): Promise<ProcessReport[]>;
  /** Takes this process from those that live. */
  close(): Promise<void>;
}

export interface ProcessesOptions {
  store: InsightStore;
  /** Unique among all processes. */
  id: string;
  describe(): ProcessReport | Promise<ProcessReport>;
  /** No other process looks: then this one is described when somebody does. */
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
      const said = await describe();
      await store.report(id, JSON.stringify({ ...said, running: said.running.slice(0, MAX_RUNNING) }), GONE_MS);
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
