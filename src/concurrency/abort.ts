/**
 * Why a signal aborted some work. `stopped`: by a person. `superseded`: by an edit or a deletion. `refused`: by the
 * platform. `given-up`: by the queue. See `Worker.work` for the others.
 */
export type AbortReason = "stopped" | "superseded" | "refused" | "given-up" | "shutdown" | "forgotten" | "lost";

export function abortWith(controller: AbortController, reason: AbortReason): void {
  controller.abort(reason);
}

export function isAborted({ reason }: AbortSignal, ...reasons: readonly AbortReason[]): boolean {
  return reasons.includes(reason);
}
