/**
 * Why a signal aborted some work. A person: `stopped`, or `superseded` by an edit or a deletion. The platform:
 * `refused`. The queue: `given-up`. See `Worker.work` for `shutdown`, `forgotten` and `lost`.
 */
export type AbortReason = "stopped" | "superseded" | "refused" | "given-up" | "shutdown" | "forgotten" | "lost";

export function abortWith(controller: AbortController, reason: AbortReason): void {
  controller.abort(reason);
}

export function isAborted({ reason }: AbortSignal, ...reasons: readonly AbortReason[]): boolean {
  return reasons.includes(reason);
}
