import type { Logger } from "pino";
import type { InboundEvent } from "../../port/events.ts";

export interface BudgetOptions {
  /** The limit that what is written for an event counts against; absent: any process does any work. */
  budgetOf?(event: InboundEvent): string | undefined;
  /** Learns what other processes make against a limit; resolves, once that is known, to what ends it. */
  openBudget?(budget: string): Promise<() => void>;
  log: Logger;
}

/** The platforms' limits, as far as those who give out work need to know of them. Never rejects. */
export interface LaneBudgets {
  of(event: InboundEvent): string | undefined;
  /** Resolves to what ends it. */
  open(budget: string | undefined): Promise<() => void>;
}

export function createLaneBudgets({ budgetOf, openBudget, log }: BudgetOptions): LaneBudgets {
  return {
    of(event) {
      try {
        return budgetOf?.(event);
      } catch (err) {
        // An event that nobody here can answer fails at its work, where that is counted and comes to an end.
        log.warn({ err, key: event.key }, "the limit of an event is not known");
        return undefined;
      }
    },
    async open(budget) {
      if (budget === undefined || openBudget === undefined) return noop;
      try {
        return await openBudget(budget);
      } catch (err) {
        log.warn({ err, budget }, "the calls of other processes could not be read");
        return noop;
      }
    },
  };
}

function noop(): void {}
