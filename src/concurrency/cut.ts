/**
 * Why a signal cut work short. People: `stopped`, `superseded` by an edit or a deletion. The platform: `refused`. The
 * queue: `given-up`, and see `Worker.work` for `shutdown`, `forgotten` and `lost`.
 */
export type CutReason = "stopped" | "superseded" | "refused" | "given-up" | "shutdown" | "forgotten" | "lost";

/** Aborts with one of the reasons that others look for. */
export function cut(controller: AbortController, reason: CutReason): void {
  controller.abort(reason);
}

/** True when the signal was aborted for one of these. */
export function isCut({ reason }: AbortSignal, ...reasons: readonly CutReason[]): boolean {
  return reasons.includes(reason);
}
