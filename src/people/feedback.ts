import type { Metrics } from "../metrics/metrics.ts";
import type { ActionEvent } from "../port/events.ts";
import type { Feedback, TurnRecords } from "../turn/record.ts";
import { maySee } from "../turn/rights.ts";

/**
 * Notes with the turn how a person judges its answer, and counts it: a repeated judgement once, and none by people who
 * cannot see the answer.
 */
export type Rate = (event: ActionEvent, feedback: Feedback) => Promise<void>;

export interface RateDeps {
  records: Pick<TurnRecords, "load" | "rate">;
  metrics: Pick<Metrics, "feedback">;
}

export function createRate({ records, metrics }: RateDeps): Rate {
  return async (event, feedback) => {
    const { turnId, author, reply } = event;
    const record = await records.load(turnId);
    if (record === undefined || !maySee(event, record)) return;
    if (!(await records.rate(turnId, author.id, feedback))) return;
    metrics.feedback(reply.platform, feedback);
  };
}
