/**
 * Why a signal aborted work. People cause `stopped`, and `superseded` by an edit or a deletion. The platform causes
 * `refused`, the queue `given-up`. See `Worker.work` for `shutdown`, `forgotten` and `lost`.
 */
export type AbortReason = "stopped" | "superseded" | "refused" | "given-up" | "shutdown" | "forgotten" | "lost";

export function abortWith(controller: AbortController, reason: AbortReason): void {
  controller.abort(reason);
}

/** True if the signal was aborted for one of these reasons. */
export function isAborted({ reason }: AbortSignal, ...reasons: readonly AbortReason[]): boolean {
  return reasons.includes(reason);
}
