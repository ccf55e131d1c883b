import type { Budget, Call } from "../../../src/pacing/budget.ts";
import { type CallLog, createCallLog } from "../../../src/pacing/call-log.ts";
import { createPacer } from "../../../src/pacing/pacer.ts";
import type { BudgetHeaders, CallKind, CallResult, Pacer, ReplyBudget } from "../../../src/port/pace.ts";
import { createMeter, type Learnt, type Meter, UNLEARNT } from "./meter.ts";

/** The budgets of one bot. */
export interface DiscordPace {
  /** The budget of a channel, a thread or a direct conversation. */
  channel(key: string): ReplyBudget;
  /** The budget of what one interaction's token writes. */
  interaction(key: string): ReplyBudget;
}

/** `processes` tells how many use the bot's token at the moment, this one included. */
export function createDiscordPace(processes = () => 1): DiscordPace {
  const budgetOf = (key: string, shared: DiscordShared): ReplyBudget => ({
    key,
    // discord.js keeps the calls of a channel in a queue of its own, one under way at a time.
    createPacer: () => createOneByOne(createPacer(createDiscordBudget(shared))),
  });
  // Calls by an interaction's token are counted apart, and not against the bot's global limit.
  const [channels, interactions] = [createDiscordShared(processes), createDiscordShared()];
  return {
    channel: (key) => budgetOf(key, channels),
    interaction: (key) => budgetOf(key, interactions),
  };
}

/** Shared by all channels of a bot. */
export interface DiscordShared {
  /** The knowledge of the counters of posts and edits, as the start for other channels. */
  learnt: { isSplit: boolean; post: Learnt; edit: Learnt };
  /** The bot's limit over all channels. */
  global: CallLog;
  /** The calls of that limit that are left to other processes. */
  ofOthers(): number;
}

/** An accepted call, and what the headers of its answer say. */
interface HeaderReading {
  sentAt: number;
  answeredAt: number;
  budget: BudgetHeaders;
}

/** The documented 50 calls per second, less what else the bot does and the doubt about when calls arrive. */
const GLOBAL_CALLS = 45;
const GLOBAL_WINDOW_MS = 1_200;
/** Answers remembered per kind: a comparison may need one from before a call that was under way for long. */
const READINGS_KEPT = 8;

export function createDiscordShared(processes = () => 1): DiscordShared {
  return {
    learnt: { isSplit: false, post: UNLEARNT, edit: UNLEARNT },
    global: createCallLog(GLOBAL_CALLS, GLOBAL_WINDOW_MS),
    ofOthers: () => GLOBAL_CALLS - Math.max(1, Math.floor(GLOBAL_CALLS / processes())),
  };
}

/**
 * The limits of one Discord channel. Posts and edits are taken to share a counter until an answer proves that they
 * do not: the platform documents neither, and the names of its buckets do not tell.
 */
export function createDiscordBudget({ learnt, global, ofOthers }: DiscordShared): Budget {
  let edits = createMeter(learnt.edit);
  let posts = learnt.isSplit ? createMeter(learnt.post) : edits;
  const readings: Record<"post" | "edit", HeaderReading[]> = { post: [], edit: [] };

  const meterOf = (kind: CallKind) => (kind === "post" ? posts : edits);
  const toCounted = (kind: CallKind) => (kind === "post" ? "post" : "edit");

  /** Two counters: an answer shows more than one counter could after what the other kind's last answer said. */
  function provesTwo(kind: "post" | "edit", { sentAt, answeredAt, budget }: HeaderReading): boolean {
    const other = readings[kind === "post" ? "edit" : "post"].findLast((answer) => answer.answeredAt <= sentAt);
    if (other === undefined || answeredAt >= other.sentAt + other.budget.resetAfterMs) return false;
    if (budget.remaining >= budget.limit - 1) return true;
    const spacingMs = other.budget.resetAfterMs / Math.max(1, other.budget.limit - other.budget.remaining);
    return budget.remaining > other.budget.remaining + (answeredAt - other.sentAt) / spacingMs + 0.5;
  }

  function split(): void {
    const shared = edits;
    const { limit, windowMs } = shared.learnt();
    const divided = (kind: "post" | "edit"): Meter => {
      const meter = createMeter({ mode: "unknown", limit, windowMs }, shared.blockedUntil());
      for (const call of shared.calls()) if (call.kind === kind) meter.add(call);
      const last = readings[kind].at(-1);
      if (last !== undefined) meter.done(kind, last.sentAt, { ok: true, budget: last.budget }, last.answeredAt);
      return meter;
    };
    edits = divided("edit");
    posts = divided("post");
    learnt.isSplit = true;
  }

  function hear(kind: "post" | "edit", sentAt: number, answer: CallResult, now: number): void {
    if (answer.ok && answer.budget !== undefined) {
      const latest: HeaderReading = { sentAt, answeredAt: now, budget: answer.budget };
      const isProof = posts === edits && provesTwo(kind, latest);
      readings[kind] = [...readings[kind].slice(-READINGS_KEPT), latest];
      if (isProof) return split();
    }
    meterOf(kind).done(kind, sentAt, answer, now);
  }

  return {
    firstGapMs: 330,
    minGapMs: 250,
    spare: 1,
    reserve: () => 0,
    gap: ({ now }) => edits.gap(now),
    isRich: (at) => edits.isRich(at),
    credit: ({ kind }: Call, at) => Math.min(meterOf(kind).credit(at), global.credit(at) - ofOthers()),
    creditAt: ({ kind }, needs, from) =>
      Math.max(meterOf(kind).creditAt(needs, from), global.creditAt(Math.min(needs + ofOthers(), GLOBAL_CALLS), from)),
    sent({ kind }, now) {
      meterOf(kind).sent(toCounted(kind), now);
      global.sent(now);
    },
    done(planned, { kind: made, sentAt, answer }, now) {
      const kind = toCounted(made);
      if (toCounted(planned.kind) !== kind) {
        const call = meterOf(planned.kind).remove(toCounted(planned.kind), sentAt);
        if (call !== undefined) meterOf(kind).add({ ...call, kind });
      }
      hear(kind, sentAt, answer, now);
      learnt.edit = edits.learnt();
      learnt.post = posts.learnt();
    },
    keepUntil: () => Math.max(edits.keepUntil(), posts.keepUntil()),
  };
}

/**
 * A pacer for a platform whose client makes the calls of one budget one after another: a second one begins when the
 * first was answered. Left to wait inside the client it would hold a credit, carry a time at which it was not made,
 * and hide from the budget which answer belongs to which call.
 */
export function createOneByOne(pacer: Pacer): Pacer {
  let inFlight: number | undefined;
  return {
    ...pacer,
    step(now) {
      if (inFlight !== undefined) return { type: "idle" };
      const step = pacer.step(now);
      if (step.type === "send") inFlight = step.reply;
      return step;
    },
    done(reply, written, now) {
      if (reply === inFlight) inFlight = undefined;
      pacer.done(reply, written, now);
    },
  };
}
