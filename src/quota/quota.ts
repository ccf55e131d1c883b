import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { persist } from "../concurrency/retry.ts";
import type { Policy } from "../config/policy/policy-file.ts";
import { LoggableError } from "../port/errors.ts";
import type { Author } from "../port/events.ts";
import type { Addition, Bound, Counters } from "../store/counters.ts";
import type { Amounts, Usage, UsedBy } from "../usage/usage.ts";
import { BILLIONTHS, costOf, priceOf, type Spent } from "./cost.ts";
import { type QuotaLimit, type Standing, toLimits, toSubject } from "./limits.ts";
import { describeAmount, describeLimit, describeTime } from "./wording.ts";

/** Longest answer where the policy says nothing else, and tokens or money have a limit. */
const ANSWER_TOKENS = 4_096;
/** Where less is left for an answer than that, nothing is asked. */
const MIN_ANSWER_TOKENS = 64;
/** Gateways count prompts in ways of their own: an estimate may be so much too small. */
const PROMPT_MARGIN = 1.25;
/** A request ends long before: what is reserved for longer is nobody's any more. */
export const RESERVED_MS = 15 * 60_000;
/** What is counted outlives its window by so much: a request may end in the next one. */
const ROW_MS = 3_600_000;
const LIFTED_MS = 86_400_000;
/** Others may take what was found to be left. */
const MAX_TRIES = 4;
/** Of what the gateway tells a cost in, where there are no prices. */
const USUAL_CURRENCY = "USD";

/** What a request may need, at most. */
export interface Need {
  /** The piece of work: whoever takes it up after a crash has the same one. */
  id: string;
  by: UsedBy & { author: Pick<Author, "id">; model: string };
  /** Estimated; somewhat more is reserved. */
  promptTokens: number;
  /** The longest answer that is asked for; absent: any. */
  maxTokens?: number | undefined;
  pictures?: number;
}

/** Room that is kept for one request. */
export interface Reservation {
  /** The longest answer there is room for; undefined: any. */
  maxTokens: number | undefined;
  /** The limit that leaves less room than usual, in words. */
  tight?: string;
  /** Counts what was used in its place; undefined: nothing, because the gateway refused. Never rejects. */
  settle(spent: Spent | undefined): Promise<void>;
}

/** A limit does not allow a request. The message is a sentence for people: which limit, how much, and when it frees up. */
export class QuotaError extends LoggableError {
  override readonly name = "QuotaError";
}

/**
 * Keeps what people use below the limits of the policy, also where many ask at once, in several processes: what a
 * request may need is reserved before it is made, and what it used is counted after it. Usage is counted in the same
 * steps, with limits or without.
 */
export interface Quota {
  /**
   * Where little is left, the reservation is for a shorter answer. Rejects with a `QuotaError` where a limit allows
   * nothing, or where there are limits and the store does not answer.
   */
  reserve(need: Need): Promise<Reservation>;
  /** Rejects when the store does not answer. */
  read(by: Omit<UsedBy, "model">): Promise<Standing[]>;
  /** Leaves one scope's limits aside for a day. Resolves to whether there was one to lift. Rejects as `read`. */
  lift(scope: QuotaLimit["scope"], by: Omit<UsedBy, "model">): Promise<boolean>;
  /** The currency of money. */
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

export function createQuota({ policy, counters, usage, pseudonym, now, log }: QuotaOptions): Quota {
  const currency = () => policy().prices?.currency ?? USUAL_CURRENCY;

  function toAsker({ author, reply: { platform, channelId, workspaceId } }: Omit<UsedBy, "model">) {
    const workspace = workspaceId === undefined ? undefined : { workspaceId };
    return { platform, pseudonym: pseudonym(platform, author.id), channelId, ...workspace };
  }

  function limitsOf(by: Omit<UsedBy, "model">): QuotaLimit[] {
    return toLimits(policy().quotas, toAsker(by), now());
  }

  async function isLifted(subject: string): Promise<boolean> {
    return ((await counters.read(`lift:${subject}`))["lifted"] ?? 0) > 0;
  }

  async function withoutLifted(limits: QuotaLimit[]): Promise<QuotaLimit[]> {
    const lifted = new Map<string, boolean>();
    for (const { subject } of limits) if (!lifted.has(subject)) lifted.set(subject, await isLifted(subject));
    return limits.filter(({ subject }) => lifted.get(subject) !== true);
  }

  function toAmounts({ by, pictures: asked = 0 }: Need, spent: Spent): Partial<Amounts> {
    const { promptTokens, cachedTokens = 0, completionTokens, isEstimated, pictures = asked } = spent;
    const cost = costOf({ ...spent, pictures }, priceOf(policy().prices, by.model));
    return {
      requests: 1,
      promptTokens,
      cachedTokens,
      completionTokens,
      estimatedTokens: isEstimated ? promptTokens + completionTokens : 0,
      pictures,
      ...(cost === undefined ? { unpriced: 1 } : { costs: { [currency()]: cost } }),
    };
  }

  /** What the limits count. The tokens of pictures have a price, and are no part of what people say. */
  function toQuotaCounts(need: Need, used: Partial<Amounts>): Record<QuotaLimit["measure"], number> {
    const { promptTokens = 0, completionTokens = 0, pictures = 0, requests = 0, costs } = used;
    const tokens = need.pictures === undefined ? promptTokens + completionTokens : 0;
    return { tokens, requests, pictures, money: costs?.[currency()] ?? 0 };
  }

  function toLimitAdditions(limits: readonly QuotaLimit[], counts: Record<string, number>): Addition[] {
    const ends = new Map(limits.map(({ row, endsAt }) => [row, endsAt]));
    return [...ends].map(([row, endsAt]) => ({ row, counts, ttlMs: endsAt - now() + ROW_MS }));
  }

  /** The most that a request with so long an answer can use. */
  function toMost({ by, promptTokens, pictures = 0 }: Need, answerTokens: number): Record<string, number> {
    const price = priceOf(policy().prices, by.model);
    const cost = costOf({ promptTokens, completionTokens: answerTokens, pictures }, price) ?? 0;
    return { tokens: pictures > 0 ? 0 : promptTokens + answerTokens, requests: 1, pictures, money: cost };
  }

  /** Tokens of an answer that what is left of a limit pays for; 0 where its length does not matter. */
  function toAffordable(need: Need, { measure }: QuotaLimit, left: number): number {
    if (measure === "tokens") return left - need.promptTokens;
    const output = priceOf(policy().prices, need.by.model)?.output ?? 0;
    if (measure !== "money" || output === 0 || need.pictures !== undefined) return 0;
    const rest = left - (toMost(need, 0)["money"] ?? 0);
    return Math.floor(rest / ((output * BILLIONTHS) / 1_000_000));
  }

  function toRefusal(need: Need, limit: QuotaLimit, left: number, most: Record<string, number>): QuotaError {
    const { measure, endsAt, most: allowed } = limit;
    const rest = describeAmount(measure, Math.max(0, left), currency());
    const needed = describeAmount(measure, most[measure] ?? 0, currency());
    const verb = need.pictures === undefined ? "Not answered" : "Not drawn";
    const frees = allowed === 0 ? "" : ` It begins anew ${describeTime(endsAt, now())}.`;
    const words = describeLimit(limit, currency());
    return new QuotaError(`${verb}: ${words} is used up (${rest} left, this may need ${needed}).${frees}`);
  }

  async function tryReserve(asked: Need, token: string, all: QuotaLimit[]): Promise<Omit<Reservation, "settle">> {
    const need = { ...asked, promptTokens: Math.ceil(asked.promptTokens * PROMPT_MARGIN) };
    const usual = need.maxTokens ?? policy().quotas?.answerTokens ?? ANSWER_TOKENS;
    const isLong = all.some(({ measure }) => measure === "tokens" || measure === "money");
    // What a request needs nothing of may be used up, and overdrawn where its limit was lowered.
    const concerned = toMost(need, usual);
    let limits = all.filter(({ measure }) => (concerned[measure] ?? 0) > 0);
    let answerTokens = need.pictures === undefined && isLong ? usual : (need.maxTokens ?? 0);
    let tight: string | undefined;
    for (let tries = 1; ; tries++) {
      const most = toMost(need, answerTokens);
      const bounds: Bound[] = limits.map(({ row, measure, most: allowed }) => {
        return { row, count: measure, by: most[measure] ?? 0, most: allowed };
      });
      const lost = toAmounts(asked, { promptTokens: asked.promptTokens, completionTokens: 0, isEstimated: true });
      const loss = [...usage.toAdditions(need.by, lost), ...toLimitAdditions(all, most)];
      const left = await counters.hold({ id: need.id, token, bounds, loss, forMs: RESERVED_MS });
      const short = limits.flatMap((limit, index) => {
        const room = left[index] ?? 0;
        return room < (most[limit.measure] ?? 0) ? [{ limit, room }] : [];
      });
      const [first] = short;
      if (first === undefined) {
        const maxTokens = need.pictures === undefined && isLong ? answerTokens : need.maxTokens;
        return { maxTokens, ...(tight !== undefined && { tight }) };
      }
      if (tries === 1) {
        const before = limits.length;
        limits = await withoutLifted(limits);
        if (limits.length < before) continue;
      }
      const affordable = short.map(({ limit, room }) => ({ limit, room, tokens: toAffordable(need, limit, room) }));
      const least = affordable.reduce((one, other) => (other.tokens < one.tokens ? other : one));
      if (tries >= MAX_TRIES || least.tokens < Math.min(usual, MIN_ANSWER_TOKENS)) {
        throw toRefusal(need, least.limit, least.room, toMost(need, Math.min(usual, MIN_ANSWER_TOKENS)));
      }
      answerTokens = least.tokens;
      tight = describeLimit(least.limit, currency());
    }
  }

  return {
    currency,
    async reserve(need) {
      const token = randomUUID();
      const limits = limitsOf(need.by);
      const onFailure = (err: unknown) => log.warn({ err, id: need.id }, "what was used could not be counted");
      try {
        const reservation = await tryReserve(need, token, limits);
        return {
          ...reservation,
          async settle(spent) {
            const used = spent && toAmounts(need, spent);
            const counted = used && toLimitAdditions(limits, toQuotaCounts(need, used));
            const additions = used === undefined ? [] : [...usage.toAdditions(need.by, used), ...(counted ?? [])];
            await persist(() => counters.settle(need.id, token, additions), onFailure);
          },
        };
      } catch (err) {
        if (err instanceof QuotaError) throw err;
        log.warn({ err, id: need.id }, "what a request may need could not be reserved");
        if (limits.length > 0) {
          throw new QuotaError("Not answered: I cannot look up the limits, because my memory is out of reach.");
        }
        return {
          maxTokens: need.maxTokens,
          async settle(spent) {
            if (spent !== undefined) await usage.note(`${need.id}:${token}`, need.by, toAmounts(need, spent));
          },
        };
      }
    },
    async read(by) {
      const limits = limitsOf(by);
      return Promise.all(
        limits.map(async (limit) => {
          const { row, measure, subject } = limit;
          const [used, held] = await Promise.all([counters.read(row), counters.readHeld(row)]);
          const amounts = { used: used[measure] ?? 0, held: held[measure] ?? 0 };
          return { ...limit, ...amounts, isLifted: await isLifted(subject) };
        }),
      );
    },
    async lift(scope, by) {
      const subject = toSubject(scope, toAsker(by));
      if (subject === undefined || !limitsOf(by).some((limit) => limit.scope === scope)) return false;
      await counters.add(randomUUID(), [{ row: `lift:${subject}`, counts: { lifted: 1 }, ttlMs: LIFTED_MS }]);
      return true;
    },
  };
}
