import { type ActionEvent, MAX_REASON_CHARS } from "../port/events.ts";
import { readEditionId } from "../port/ids.ts";
import type { Services } from "../services/services.ts";
import { neutralize } from "../text/neutralize.ts";
import type { Feedback } from "../turn/record.ts";
import type { TurnRecords } from "../turn/records.ts";
import { maySee } from "../turn/rights.ts";

/** Stores a rating of an answer and counts it once. Ignores people who cannot see the answer. */
export type Rate = (event: ActionEvent, feedback: Feedback) => Promise<void>;

export function createRate({ records, metrics }: Services & { records: TurnRecords }): Rate {
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
