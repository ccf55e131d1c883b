import { randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import type { Metrics } from "../metrics/metrics.ts";
import type { Stores } from "../store/keyv.ts";
import { createProcesses, type Processes, type ProcessReport } from "./processes.ts";
import { createRedisInsight } from "./redis-insight.ts";
import { createSqliteInsight } from "./sqlite-insight.ts";
import type { Story } from "./story.ts";
import { createTrends, type Trends } from "./trends.ts";
import { createTurnWatch, type TurnWatch } from "./turn-watch.ts";

/** What all processes of a service report for the dashboard. */
export interface Insight {
  trends: Trends;
  turns: TurnWatch;
  processes: Processes;
  /** Erases a person's stories. Rejects if the store is unavailable. */
  forgetAuthor(platform: string, authorId: string, within?: string): Promise<void>;
  /** Resolves to a person's stories, newest first. Rejects if the store is unavailable. */
  exportAuthor(platform: string, authorId: string, within?: string): Promise<Story[]>;
  /** Erases the stories of all conversations whose ids start with `prefix`. */
  eraseConversations(prefix: string): Promise<void>;
  close(): Promise<void>;
}

export interface InsightOptions {
  stores: Pick<Stores, "shared" | "now" | "counters">;
  database: DatabaseSync;
  processName: string;
  describe(running: ProcessReport["running"]): ProcessReport | Promise<ProcessReport>;
  log: Logger;
}

export function createInsight({ stores, database, processName, describe, log }: InsightOptions): Insight {
  const { shared, now, counters } = stores;
  const store = shared === undefined ? createSqliteInsight(database, now) : createRedisInsight(shared);
  const trends = createTrends({ counters, now, log });
  const turns = createTurnWatch({ store, trends, process: processName, now: Date.now, log });
  const processes = createProcesses({
    store,
    id: randomUUID(),
    describe: () => describe(turns.running()),
    isAlone: shared === undefined,
    log,
  });

  return {
    trends,
    turns,
    processes,
    async forgetAuthor(platform, authorId, within) {
      await turns.forget(tellsOf(platform, authorId, within));
    },
    async exportAuthor(platform, authorId, within) {
      const stories = [...(await turns.turns()), ...(await turns.failures())].filter(
        tellsOf(platform, authorId, within),
      );
      return [...new Map(stories.map((story) => [story.id, story])).values()];
    },
    eraseConversations: (prefix) => turns.forget(({ conversationId }) => conversationId.startsWith(prefix)),
    async close() {
      await processes.close();
      await trends.close();
    },
  };
}

function tellsOf(platform: string, authorId: string, within?: string): (story: Story) => boolean {
  return ({ reply, author, conversationId }) =>
    reply.platform === platform &&
    author.id === authorId &&
    (within === undefined || conversationId.startsWith(within));
}

/** Wraps metrics so that they also count into the trends. */
export function withTrends(metrics: Metrics, trends: Trends): Metrics {
  return {
    ...metrics,
    feedback(platform, feedback) {
      metrics.feedback(platform, feedback);
      trends.count("votes", feedback);
    },
    reasonGiven(platform) {
      metrics.reasonGiven(platform);
      trends.count("votes", "reason");
    },
    async pictureEnded(outcome, id) {
      await metrics.pictureEnded(outcome, id);
      await trends.end(id, { counts: [["pictures", outcome]] });
    },
  };
}
