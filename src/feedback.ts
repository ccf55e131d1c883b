import type { ActionEvent } from "./adapter.ts";
import type { Metrics } from "./metrics.ts";
import type { Feedback, TurnRecords } from "./turn-record.ts";

/** Notes with the turn what somebody thinks of its answer, and counts it; said twice it is one word. */
export type Rate = (event: ActionEvent, feedback: Feedback) => Promise<void>;

export interface RateDeps {
  records: Pick<TurnRecords, "load" | "save">;
  metrics: Pick<Metrics, "feedback">;
}

export function createRate({ records, metrics }: RateDeps): Rate {
  return async ({ turnId, author, reply }, feedback) => {
    const record = await records.load(turnId);
    if (record === undefined || record.feedback?.[author.id] === feedback) return;
    await records.save({ ...record, feedback: { ...record.feedback, [author.id]: feedback } });
    metrics.feedback(reply.platform, feedback);
  };
}
