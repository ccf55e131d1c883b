import type { Metrics } from "../metrics/metrics.ts";
import { type ActionEvent, MAX_REASON_CHARS } from "../port/events.ts";
import { readEditionId } from "../port/ids.ts";
import { neutralize } from "../text/neutralize.ts";
import type { Feedback, TurnRecords } from "../turn/record.ts";
import { maySee } from "../turn/rights.ts";

/** Notes a judgement of an answer and counts it, repeated ones once. None by people who cannot see the answer. */
export type Rate = (event: ActionEvent, feedback: Feedback) => Promise<void>;

export interface RateDeps {
  records: Pick<TurnRecords, "load" | "rate">;
  metrics: Pick<Metrics, "feedback" | "reasonGiven">;
}

export function createRate({ records, metrics }: RateDeps): Rate {
  return async (event, feedback) => {
    const { author, reply } = event;
    const { turnId, edition } = readEditionId(event.turnId);
    const record = await records.load(turnId);
    if (record === undefined || !maySee(event, record)) return;
    const reason = neutralize(event.reason ?? "")
      .slice(0, MAX_REASON_CHARS)
      .trim();
    const { isNew, hasNewReason } = await records.rate(
      { id: turnId, edition: edition ?? record.edition },
      author.id,
      feedback,
      reason || undefined,
    );
    if (isNew) metrics.feedback(reply.platform, feedback);
    if (hasNewReason) metrics.reasonGiven(reply.platform);
  };
}
