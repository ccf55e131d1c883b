import type { Logger } from "pino";
import { z } from "zod";
import type { Scheduler } from "../pacing/scheduler.ts";
import type { InboundEvent } from "../port/events.ts";
import type { CallHistory } from "../queue/redis-journal.ts";
import { createStoredParser } from "../store/values.ts";

/** Calls are kept this long, because no known rate limit has a longer window. */
const KEPT_MS = 90_000;

const call = z.object({
  kind: z.enum(["post", "edit", "final"]),
  room: z.string(),
  isFallback: z.boolean(),
  /** Unix milliseconds. */
  at: z.number(),
  refusedForMs: z.number().exactOptional(),
});
const history = z.record(z.string(), z.array(call));

export interface CallHistoryOptions {
  scheduler: Pick<Scheduler, "callsOf" | "recall">;
  budgetOf(event: InboundEvent): string;
  /** Milliseconds of a clock that all processes share. */
  now(): number;
  log: Logger;
}

/** Stores the calls that count against rate limits, so that the next process to call the platform knows them. */
export function createCallHistory({ scheduler, budgetOf, now, log }: CallHistoryOptions): CallHistory {
  const parse = createStoredParser(history, "calls", log);
  return {
    budgetOf,
    describe(budgets) {
      const ahead = now() - performance.now();
      const isCounted = ({ at }: { at: number }) => at > now() - KEPT_MS;
      const toCalls = (budget: string) =>
        scheduler.callsOf(budget).map(({ sentAt, ...rest }) => ({ ...rest, at: sentAt + ahead }));
      const known = [...budgets].map((budget) => [budget, toCalls(budget).filter(isCounted)] as const);
      const entries = known.filter(([, calls]) => calls.length > 0);
      return entries.length === 0
        ? undefined
        : JSON.stringify(Object.fromEntries(entries) satisfies z.input<typeof history>);
    },
    recall(text) {
      const ahead = now() - performance.now();
      for (const [budget, calls] of Object.entries(parse(text) ?? {})) {
        scheduler.recall(
          budget,
          calls.map(({ at, ...rest }) => ({ ...rest, sentAt: at - ahead })),
        );
      }
    },
  };
}
