import type { Pacer } from "./pacer.ts";
import { createSlackBudget } from "./slack-budget.ts";
import { createTwoWayPacer } from "./two-way-pacer.ts";

export interface SlackPacerOptions {
  /** Processes that share a workspace's limits without talking to each other; each takes its part. */
  replicas?: number;
}

/**
 * The pace of one workspace: replies are native streams as long as those can be begun, about nineteen a minute, and
 * beyond that messages that are updated.
 */
export function createSlackPacer({ replicas = 1 }: SlackPacerOptions = {}): Pacer {
  const append = createSlackBudget({ method: "append", replicas });
  return createTwoWayPacer(append, createSlackBudget({ method: "update", replicas }));
}
