import type { CallKind, Pacer, PacerStep, Written } from "../port/pace.ts";
import { EDIT_RANK, type Rank, toBackoffMs } from "./pacer.ts";

interface EvenReply {
  /** True if the reply still needs a call, for some text or for its end. */
  waiting: boolean;
  ended: boolean;
  inFlight: boolean;
  next: CallKind;
  lastSend: number;
  failures: number;
  notBefore: number;
}

export interface EvenPace {
  /** Time between two calls of all replies together, in milliseconds. */
  gapMs: number;
  /** Minimum time between two edits of one reply, except before its final; absent: 0. */
  replyGapMs?: number;
}

/** The pace of the local page, which has no rate limit: smooth for a reader, without too many writes to the disk. */
export const OWN_SURFACE_PACE: EvenPace = { gapMs: 10, replyGapMs: 120 };

/**
 * A simple pacer for platforms that report no limits. It shows the first text at once, then makes one call every
 * `gapMs` for all replies of the budget together. Finals go before first posts, and first posts before edits, which
 * take turns.
 */
export function createEvenPacer({ gapMs, replyGapMs = 0 }: EvenPace): Pacer {
  const replies = new Map<number, EvenReply>();
  let joined = 0;
  let lastCall = -Infinity;
  let blockedUntil = -Infinity;

  function dueOf(reply: EvenReply): number {
    const editDue = toRank(reply) === EDIT_RANK ? reply.lastSend + replyGapMs : -Infinity;
    return Math.max(lastCall + gapMs, blockedUntil, reply.notBefore, editDue);
  }

  function step(now: number): PacerStep {
    let until = Infinity;
    let chosen: { number: number; reply: EvenReply } | undefined;
    for (const [number, reply] of replies) {
      if (!reply.waiting || reply.inFlight) continue;
      const due = dueOf(reply);
      if (due > now) until = Math.min(until, due);
      else if (chosen === undefined || comesBefore(reply, chosen.reply)) chosen = { number, reply };
    }
    if (chosen === undefined) return until === Infinity ? { type: "idle" } : { type: "wait", until };
    const { number, reply } = chosen;
    Object.assign(reply, { waiting: false, inFlight: true, lastSend: now });
    lastCall = now;
    return { type: "send", reply: number, kind: reply.next };
  }

  function done(number: number, { answer, behind, next }: Written, now: number): void {
    if (!answer.ok && answer.retryAfterMs !== undefined)
      blockedUntil = Math.max(blockedUntil, now + answer.retryAfterMs);
    const reply = replies.get(number);
    if (reply === undefined) return;
    reply.inFlight = false;
    if (answer.ok) {
      reply.failures = 0;
      reply.next = next ?? "edit";
      reply.waiting ||= behind;
      return;
    }
    reply.waiting = true;
    if (answer.retryAfterMs !== undefined) return;
    reply.failures += 1;
    reply.notBefore = now + toBackoffMs(reply.failures);
  }

  return {
    join({ first = "post" } = {}) {
      joined += 1;
      replies.set(joined, {
        waiting: false,
        ended: false,
        inFlight: false,
        next: first,
        lastSend: -Infinity,
        failures: 0,
        notBefore: -Infinity,
      });
      return joined;
    },
    text(number, units) {
      const reply = replies.get(number);
      if (reply !== undefined && units > 0) reply.waiting = true;
    },
    end(number) {
      const reply = replies.get(number);
      if (reply !== undefined) Object.assign(reply, { ended: true, waiting: true });
    },
    leave: (number) => void replies.delete(number),
    step,
    done,
    keepUntil: () => Math.max(lastCall + gapMs, blockedUntil),
  };
}

function comesBefore(a: EvenReply, b: EvenReply): boolean {
  const difference = toRank(a) - toRank(b);
  return difference === 0 ? a.lastSend < b.lastSend : difference < 0;
}

function toRank(reply: EvenReply): Rank {
  if (reply.ended) return 0;
  return reply.next === "post" ? 1 : EDIT_RANK;
}
