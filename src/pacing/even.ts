import { toBackoff } from "./backoff.ts";
import type { CallKind, Written } from "./call.ts";
import type { Pacer, Step } from "./pacer.ts";

interface EvenReply {
  /** Text or an ending that no call has carried yet. */
  waiting: boolean;
  ended: boolean;
  inFlight: boolean;
  next: CallKind;
  lastSend: number;
  failures: number;
  notBefore: number;
}

export interface EvenPace {
  /** Seconds between two calls, whichever replies they are for. */
  gap: number;
  /** Least seconds between two edits of one reply, its final excepted; 0 when absent. */
  replyGap?: number;
}

/**
 * A plain pace for platforms that say nothing about their limits: the first text at once, then one call every
 * `gap` seconds over all replies of the budget. Finals go first, then first posts, then edits in turn.
 */
export function createEvenPacer({ gap, replyGap = 0 }: EvenPace): Pacer {
  const replies = new Map<number, EvenReply>();
  let joined = 0;
  let lastCall = -Infinity;
  let blockedUntil = -Infinity;

  function dueOf(reply: EvenReply): number {
    const editDue = toClass(reply) === EDIT_CLASS ? reply.lastSend + replyGap : -Infinity;
    return Math.max(lastCall + gap, blockedUntil, reply.notBefore, editDue);
  }

  function step(now: number): Step {
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
    if (!answer.ok && answer.retryAfter !== undefined) blockedUntil = Math.max(blockedUntil, now + answer.retryAfter);
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
    if (answer.retryAfter !== undefined) return;
    reply.failures += 1;
    reply.notBefore = now + toBackoff(reply.failures);
  }

  return {
    join(_now, _room, _isSpare, first = "post") {
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
    keepUntil: () => Math.max(lastCall + gap, blockedUntil),
  };
}

const EDIT_CLASS = 2;

function comesBefore(a: EvenReply, b: EvenReply): boolean {
  const difference = toClass(a) - toClass(b);
  return difference === 0 ? a.lastSend < b.lastSend : difference < 0;
}

function toClass(reply: EvenReply): number {
  if (reply.ended) return 0;
  return reply.next === "post" ? 1 : EDIT_CLASS;
}
