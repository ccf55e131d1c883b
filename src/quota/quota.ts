import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { FencedError } from "../concurrency/fence.ts";
import { PATIENT_PAUSES_MS, persist, retry } from "../concurrency/retry.ts";
import type { Policy } from "../config/policy/policy-file.ts";
import type { QuotaMeasure } from "../config/policy/quotas.ts";
import { LoggableError } from "../port/errors.ts";
import type { Addition, Counters, Counts } from "../store/counters.ts";
import { isStoreOutage } from "../store/outage.ts";
import type { Usage, UsedBy } from "../usage/usage.ts";
import type { Spent } from "./cost.ts";
import { type QuotaLimit, type Standing, toLimits, toSubject } from "./limits.ts";
import { createReckoning, type Need, type Reckoning } from "./reckon.ts";
import { describeAmount, describeLimit, describeTime } from "./wording.ts";

/** Longest answer where the policy says nothing else, and tokens or money have a limit. */
const ANSWER_TOKENS = 4_096;
/** With less than this left for an answer, no request is made. */
const MIN_ANSWER_TOKENS = 64;
/** Gateways count prompts in ways of their own: an estimate may be too small by this share. */
const PROMPT_MARGIN = 1.25;
/** A request ends long before: what is reserved for longer is nobody's any more. */
export const RESERVED_MS = 15 * 60_000;
/** Milliseconds that counts outlive their window: a request may end in the next one. */
const ROW_MS = 3_600_000;
const LIFTED_MS = 86_400_000;
/** Others may take what was found to be left, so a reservation is tried again. */
const MAX_TRIES = 4;
const STORE_IS_AWAY = "Not answered: I cannot look up the limits, because my memory is out of reach.";

/** Room that is kept for one request. */
export interface Reservation {
  /** The longest answer there is room for; undefined: any. */
  maxTokens: number | undefined;
  /** The limit that leaves less room than usual, in words. */
  tight?: string;
  /**
   * To be called, and waited for, right before the request is sent, each time: from then on it counts although nobody
   * settles it. Rejects with a QuotaError where it may not be sent, and with the signal's reason.
   */
  confirm(signal: AbortSignal): Promise<void>;
  /**
   * Counts what was used instead of the reservation. Undefined: the gateway refused, so it counts as a request without
   * tokens; if it was never confirmed, it was not sent and counts for nothing. Never rejects.
   */
  settle(spent: Spent | undefined): Promise<void>;
}

/** A limit does not allow a request. The message is a sentence for people: which limit, how much, and when it frees up. */
export class QuotaError extends LoggableError {
  override readonly name = "QuotaError";
}

/**
 * Keeps usage below the policy's limits across processes: a request's need is reserved before it is made, and its use
 * counted after. Usage is counted in the same steps, with limits or without.
 */
export interface Quota {
  /**
   * Reserves room for a request; with little left, for a shorter answer. Rejects with a `QuotaError` when a limit
   * allows nothing, or when there are limits and the store stays away; and with the signal's reason.
   */
  reserve(need: Need, signal: AbortSignal): Promise<Reservation>;
  /**
   * The sentence for somebody for whom a limit has no room for anything just now; undefined where there is some, and
   * where that is not known. Never rejects. What is let pass here is still to be reserved.
   */
  findRefusal(by: Omit<UsedBy, "model">, what: "chat" | "pictures"): Promise<string | undefined>;
  /** Rejects when the store does not answer. */
  read(by: Omit<UsedBy, "model">): Promise<Standing[]>;
  /** Leaves one scope's limits aside for a day. Resolves to whether there was one to lift. Rejects as `read`. */
  lift(scope: QuotaLimit["scope"], by: Omit<UsedBy, "model">): Promise<boolean>;
  /**
   * Finds the limit of tokens or money of which the least is left, from 0 to 1; undefined where there is none, or where
   * that is not known. Limits of a minute do not count: nobody saves for the next minute. Never rejects.
   */
  readScarcest(by: Omit<UsedBy, "model">): Promise<{ left: number; limit: string } | undefined>;
  currency(): string;
}

export interface QuotaOptions {
  policy(): Policy;
  counters: Counters;
  usage: Pick<Usage, "note" | "toAdditions">;
  pseudonym(platform: string, userId: string): string;
  /** Unix milliseconds. */
  now(): number;
  log: Logger;
}

/** The least that anything needs. */
const LEAST: Record<"chat" | "pictures", Record<QuotaMeasure, number>> = {
  chat: { tokens: MIN_ANSWER_TOKENS, requests: 1, pictures: 0, money: 1 },
  pictures: { tokens: 0, requests: 1, pictures: 1, money: 1 },
};

export function createQuota(options: QuotaOptions): Quota {
  const { policy, counters, usage, pseudonym, now, log } = options;
  const reckoning = createReckoning(policy);

  function toAsker({ author, reply: { platform, channelId, workspaceId } }: Omit<UsedBy, "model">) {
    const workspace = workspaceId === undefined ? undefined : { workspaceId };
    return { platform, pseudonym: pseudonym(platform, author.id), channelId, ...workspace };
  }

  function limitsOf(by: Omit<UsedBy, "model">): QuotaLimit[] {
    return toLimits(policy().quotas, toAsker(by), now());
  }

  async function isLifted(subject: string): Promise<boolean> {
    return ((await counters.read(toLiftedRow(subject)))["lifted"] ?? 0) > 0;
  }

  async function read(by: Omit<UsedBy, "model">): Promise<Standing[]> {
    return Promise.all(
      limitsOf(by).map(async (limit) => {
        const { row, measure, subject } = limit;
        const [used, held] = await Promise.all([counters.read(row), counters.readHeld(row)]);
        const amounts = { used: used[measure] ?? 0, held: held[measure] ?? 0 };
        return { ...limit, ...amounts, isLifted: await isLifted(subject) };
      }),
    );
  }

  /** Without `spent` a request counts too: a person could make the service send refused ones without end. */
  function toAdditions(asked: Need, limits: readonly QuotaLimit[], spent: Spent | undefined): Addition[] {
    const need = spent === undefined ? asked : toAnswered(asked, spent);
    const used = spent === undefined ? { requests: 1 } : reckoning.toAmounts(need, spent);
    const measured = reckoning.toMeasured(need, used);
    return [...usage.toAdditions(need.by, used), ...toLimitAdditions(limits, measured, now())];
  }

  return {
    currency: reckoning.currency,
    async reserve(need, signal) {
      const token = randomUUID();
      const limits = limitsOf(need.by);
      const onFailure = (err: unknown) => log.warn({ err, id: need.id }, "usage could not be counted");
      try {
        const reserve = () => tryReserve({ ...options, reckoning, isLifted }, need, token, limits);
        // A limit is not passed because the store is away for a moment, and nobody is refused for that.
        const pausesMs = limits.length > 0 ? PATIENT_PAUSES_MS : [];
        const reservation = await retry(reserve, { pausesMs, mayPass: isStoreOutage }, signal);
        let confirming: Promise<void> | undefined;
        let isConfirmed = false;
        async function confirmOnce(signal: AbortSignal): Promise<void> {
          const write = () => counters.confirm(need.id, token);
          const isHeld = await retry(write, { pausesMs, mayPass: isStoreOutage }, signal).catch((err: unknown) => {
            signal.throwIfAborted();
            onFailure(err);
            if (limits.length > 0) throw new QuotaError(STORE_IS_AWAY);
            return true;
          });
          if (!isHeld) throw new QuotaError("Not answered: this waited for too long. Please ask once more.");
          isConfirmed = true;
        }
        return {
          ...reservation,
          confirm: (signal) => (confirming ??= confirmOnce(signal)),
          async settle(spent) {
            const additions = spent === undefined && !isConfirmed ? [] : toAdditions(need, limits, spent);
            await persist(() => counters.settle(need.id, token, additions), onFailure);
          },
        };
      } catch (err) {
        signal.throwIfAborted();
        if (err instanceof QuotaError || err instanceof FencedError) throw err;
        log.warn({ err, id: need.id }, "the tokens of a request could not be reserved");
        if (limits.length > 0) throw new QuotaError(STORE_IS_AWAY);
        return {
          maxTokens: need.maxTokens,
          confirm: async () => {},
          async settle(spent) {
            if (spent === undefined) return;
            const answered = toAnswered(need, spent);
            await usage.note(`${need.id}:${token}`, answered.by, reckoning.toAmounts(answered, spent));
          },
        };
      }
    },
    async findRefusal(by, what) {
      try {
        const full = (await read(by)).find((one) => !one.isLifted && isFull(one, LEAST[what][one.measure]));
        if (full === undefined) return undefined;
        const room = full.most - full.used - full.held;
        const told = { currency: reckoning.currency(), now: now() };
        return toRefusal(what === "pictures", { limit: full, room }, LEAST[what][full.measure], told).message;
      } catch (err) {
        log.warn({ err }, "the room under a limit could not be read");
        return undefined;
      }
    },
    read,
    readScarcest: async (by) => toScarcest(await read(by).catch(() => []), reckoning.currency()),
    async lift(scope, by) {
      const subject = toSubject(scope, toAsker(by));
      if (subject === undefined || !limitsOf(by).some((limit) => limit.scope === scope)) return false;
      await counters.add(randomUUID(), [{ row: toLiftedRow(subject), counts: { lifted: 1 }, ttlMs: LIFTED_MS }]);
      return true;
    },
  };
}

/** A request that needs nothing of an overdrawn limit is not held back by it. */
function isFull({ most, used, held }: Standing, least: number): boolean {
  return least > 0 && most - used - held < least;
}

function toScarcest(standings: readonly Standing[], currency: string) {
  const counted = standings.filter(({ measure, window, isLifted }) => {
    return (measure === "tokens" || measure === "money") && window !== "minute" && !isLifted;
  });
  const limits = counted.map((one) => ({
    left: one.most === 0 ? 0 : Math.max(0, one.most - one.used - one.held) / one.most,
    limit: describeLimit(one, currency),
  }));
  return limits.toSorted((one, other) => one.left - other.left)[0];
}

/** Price and usage are those of the model that answered. */
function toAnswered(need: Need, { model = need.by.model }: Spent): Need {
  return { ...need, by: { ...need.by, model } };
}

function toLiftedRow(subject: string): string {
  return `lift:${subject}`;
}

function toLimitAdditions(limits: readonly QuotaLimit[], counts: Counts, now: number): Addition[] {
  const ends = new Map(limits.map(({ row, endsAt }) => [row, endsAt]));
  return [...ends].map(([row, endsAt]) => ({ row, counts, ttlMs: endsAt - now + ROW_MS }));
}

interface ReserveDeps extends Pick<QuotaOptions, "policy" | "counters" | "usage" | "now"> {
  reckoning: Reckoning;
  isLifted(subject: string): Promise<boolean>;
}

/** Holds room for the longest answer that there is any for. Rejects as `Quota.reserve` does, or with the store's error. */
async function tryReserve(
  { policy, counters, usage, now, reckoning, isLifted }: ReserveDeps,
  asked: Need,
  token: string,
  all: readonly QuotaLimit[],
): Promise<Omit<Reservation, "confirm" | "settle">> {
  const need = { ...asked, promptTokens: Math.ceil(asked.promptTokens * PROMPT_MARGIN) };
  const lost = { promptTokens: asked.promptTokens, completionTokens: 0, isEstimated: true };
  const loss = usage.toAdditions(asked.by, reckoning.toAmounts(asked, lost));
  const usual = need.maxTokens ?? policy().quotas?.answerTokens ?? ANSWER_TOKENS;
  const isLong = need.pictures === undefined && all.some(({ measure }) => measure === "tokens" || measure === "money");
  // Limits that the request does not draw on may be used up, or overdrawn after they were lowered.
  const concerned = reckoning.toMost(need, usual);
  let limits = all.filter(({ measure }) => concerned[measure] > 0);
  let answerTokens = isLong ? usual : 0;
  let tight: string | undefined;
  for (let tries = 1; ; tries++) {
    const most = reckoning.toMost(need, answerTokens);
    const bounds = limits.map(({ row, measure, most }) => ({ row, count: measure, most }));
    const left = await counters.hold({
      id: need.id,
      token,
      bounds: bounds.map((bound) => ({ ...bound, by: most[bound.count] })),
      loss: [...loss, ...toLimitAdditions(all, most, now())],
      isTentative: true,
      forMs: RESERVED_MS,
    });
    const short = limits.flatMap((limit, index) => {
      const room = left[index] ?? 0;
      return room < most[limit.measure] ? [{ limit, room, tokens: reckoning.toAffordable(need, limit, room) }] : [];
    });
    const [first] = short;
    if (first === undefined) {
      const maxTokens = isLong ? answerTokens : need.maxTokens;
      return { maxTokens, ...(tight !== undefined && { tight }) };
    }
    const kept = tries > 1 ? limits : await withoutLifted(limits, isLifted);
    if (kept.length < limits.length) {
      limits = kept;
      continue;
    }
    const least = short.reduce((one, other) => (other.tokens < one.tokens ? other : one), first);
    const enough = Math.min(usual, MIN_ANSWER_TOKENS);
    if (tries >= MAX_TRIES || least.tokens < enough) {
      const needed = reckoning.toMost(need, isLong ? enough : 0)[least.limit.measure];
      throw toRefusal(need.pictures !== undefined, least, needed, { currency: reckoning.currency(), now: now() });
    }
    answerTokens = least.tokens;
    tight = describeLimit(least.limit, reckoning.currency());
  }
}

async function withoutLifted(limits: QuotaLimit[], isLifted: ReserveDeps["isLifted"]): Promise<QuotaLimit[]> {
  const subjects = [...new Set(limits.map(({ subject }) => subject))];
  const lifted = new Set<string>();
  for (const subject of subjects) if (await isLifted(subject)) lifted.add(subject);
  return limits.filter(({ subject }) => !lifted.has(subject));
}

function toRefusal(
  isPicture: boolean,
  { limit, room }: { limit: QuotaLimit; room: number },
  needed: number,
  { currency, now }: { currency: string; now: number },
): QuotaError {
  const { measure, endsAt, most } = limit;
  const rest = describeAmount(measure, Math.max(0, room), currency);
  const verb = isPicture ? "Not drawn" : "Not answered";
  const frees = most === 0 ? "" : ` It begins anew ${describeTime(endsAt, now)}.`;
  const may = describeAmount(measure, needed, currency);
  return new QuotaError(
    `${verb}: ${describeLimit(limit, currency)} is used up (${rest} left, this may need ${may}).${frees}`,
  );
}
