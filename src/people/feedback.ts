import type { ActionEvent } from "../adapter.ts";
import type { Metrics } from "../metrics.ts";
import type { Feedback, TurnRecords } from "../turn/record.ts";

/** Notes with the turn what somebody thinks of its answer, and counts it; said twice it is one word. */
export type Rate = (event: ActionEvent, feedback: Feedback) => Promise<void>;

export interface RateDeps {
  records: Pick<TurnRecords, "rate">;
  metrics: Pick<Metrics, "feedback">;
}

export function createRate({ records, metrics }: RateDeps): Rate {
  return async ({ turnId, author, reply }, feedback) => {
    if (!(await records.rate(turnId, author.id, feedback))) return;
    metrics.feedback(reply.platform, feedback);
  };
}
