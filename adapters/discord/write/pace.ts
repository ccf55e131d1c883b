import type { Budget, Call } from "../../../src/pacing/budget.ts";
import { type CallLog, createCallLog } from "../../../src/pacing/call-log.ts";
import { createPacer } from "../../../src/pacing/pacer.ts";
import type { BudgetHeaders, CallKind, CallResult, Pacer, ReplyBudget } from "../../../src/port/pace.ts";
import { createMeter, type Learnt, type Meter, UNLEARNT } from "./meter.ts";

export interface DiscordPace {
  channel(key: string): ReplyBudget;
  interaction(key: string): ReplyBudget;
}

/** `processes` returns how many processes use the bot's token now, including this one. */
export function createDiscordPace(processes = () => 1): DiscordPace {
  const budgetOf = (key: string, shared: DiscordShared): ReplyBudget => ({
    key,
    // discord.js runs the calls of a channel one at a time.
    createPacer: () => createOneByOne(createPacer(createDiscordBudget(shared))),
  });
  // Discord counts calls with an interaction's token separately, outside the bot's global limit.
  const [channels, interactions] = [createDiscordShared(processes), createDiscordShared()];
  return {
    channel: (key) => budgetOf(key, channels),
    interaction: (key) => budgetOf(key, interactions),
  };
}

export interface DiscordShared {
  /** The latest knowledge about the counters for posts and edits. New channels start with it. */
  learnt: { isSplit: boolean; post: Learnt; edit: Learnt };
  global: CallLog;
  /** How many calls of the global limit to leave to other processes. */
  ofOthers(): number;
}

interface HeaderReading {
  sentAt: number;
  answeredAt: number;
  budget: BudgetHeaders;
}

/** Discord documents 50 calls per second. The rest is for other calls and uncertain arrival times. */
const GLOBAL_CALLS = 45;
const GLOBAL_WINDOW_MS = 1_200;
/** How many responses to remember per kind. A comparison can need a response from before a slow call. */
const READINGS_KEPT = 8;

export function createDiscordShared(processes = () => 1): DiscordShared {
  return {
    learnt: { isSplit: false, post: UNLEARNT, edit: UNLEARNT },
    global: createCallLog(GLOBAL_CALLS, GLOBAL_WINDOW_MS),
    ofOthers: () => GLOBAL_CALLS - Math.max(1, Math.floor(GLOBAL_CALLS / processes())),
  };
}

/** One channel's limits. Posts and edits share one counter until a response proves that they have two. */
export function createDiscordBudget({ learnt, global, ofOthers }: DiscordShared): Budget {
  let edits = createMeter(learnt.edit);
  let posts = learnt.isSplit ? createMeter(learnt.post) : edits;
  const readings: Record<"post" | "edit", HeaderReading[]> = { post: [], edit: [] };

  const meterOf = (kind: CallKind) => (kind === "post" ? posts : edits);
  const toCounted = (kind: CallKind) => (kind === "post" ? "post" : "edit");

  /** True if a response reports more remaining calls than one counter shared by both kinds could have left. */
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

  function observe(kind: "post" | "edit", sentAt: number, answer: CallResult, now: number): void {
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
      observe(kind, sentAt, answer, now);
      learnt.edit = edits.learnt();
      learnt.post = posts.learnt();
    },
    keepUntil: () => Math.max(edits.keepUntil(), posts.keepUntil()),
  };
}

/**
 * Makes one call of a budget at a time: each starts after the previous response. Otherwise calls that wait inside
 * discord.js would be counted too early and matched to the wrong responses.
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
