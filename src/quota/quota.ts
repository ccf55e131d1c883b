import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { PATIENT_PAUSES_MS, persist, retry } from "../concurrency/retry.ts";
import type { Policy } from "../config/policy/policy-file.ts";
import { MEASURES, type QuotaMeasure } from "../config/policy/quotas.ts";
import { LoggableError } from "../port/errors.ts";
import { checkRight, FencedError, type Right } from "../port/right.ts";
import { type Addition, type Bound, type Counters, type Counts, toCorrections } from "../store/counters.ts";
import { isStoreOutage } from "../store/outage.ts";
import type { Usage, UsedBy } from "../usage/usage.ts";
import type { Spent, Unspent } from "./cost.ts";
import { type QuotaLimit, type Standing, toLimits, toSubject } from "./limits.ts";
import { createReckoning, type Measured, type Need, type Reckoning } from "./reckon.ts";
import { describeAmount, describeLimit, describeTime } from "./wording.ts";

/** Maximum length of an answer if tokens or money are limited and the policy sets no length. */
const ANSWER_TOKENS = 4_096;
/** If fewer tokens than this are left for an answer, no request is made. */
const MIN_ANSWER_TOKENS = 64;
/** The actual number of prompt tokens can be this many times the estimate, because gateways count differently. */
const PROMPT_MARGIN = 1.25;
/** A count is stored this long after its window, because a request can end in the next window. */
const ROW_MS = 3_600_000;
const LIFTED_MS = 86_400_000;
/** Maximum number of attempts to reserve. An attempt fails if another process uses the remaining quota first. */
const MAX_TRIES = 4;
const STORE_IS_AWAY = "I couldn't check your limits, because my storage is unavailable. Please try again in a minute.";

export interface Reservation {
  /** Maximum number of answer tokens that the limits allow; undefined if no limit applies to them. */
  maxTokens: number | undefined;
  /** The limit that shortens the answer, in words. */
  tight?: string;
  /**
   * Replaces the reservation with the actual usage. A refused request counts as a request without tokens; an unsent
   * request does not count. In the same step, `answer` counts an answer, once per id. Never rejects. If this is never
   * called, the reservation stays until its limits reset.
   */
  settle(outcome: Spent | Unspent, answer?: { id: string; by: UsedBy }): Promise<void>;
}

/** A limit does not permit a request. The message tells people which limit, how much is left, and when it resets. */
export class QuotaError extends LoggableError {
  override readonly name = "QuotaError";
}

/**
 * Keeps usage within the policy's limits, across processes. An estimate counts during a request; then the actual usage
 * replaces it. Without limits, it reserves nothing and counts usage when the request ends.
 */
export interface Quota {
  /**
   * Reserves quota for a request. If little is left, reserves less, for a shorter answer. Rejects with a `QuotaError`
   * if nothing fits, or if the store stays unavailable and limits exist. Rejects with the signal's reason.
   */
  reserve(need: Need, signal: AbortSignal): Promise<Reservation>;
  /**
   * Resolves to a sentence for the person if a limit is reached; undefined if not, or if the usage is unknown. Reserves
   * nothing, so the request still needs a reservation. Never rejects.
   */
  findRefusal(by: Omit<UsedBy, "model">, what: "chat" | "pictures"): Promise<string | undefined>;
  /** Rejects if the store is unavailable. */
  read(by: Omit<UsedBy, "model">): Promise<Standing[]>;
  /** Lifts the limits of one scope for a day. Resolves to false if it has none. Rejects if the store is unavailable. */
  lift(scope: QuotaLimit["scope"], by: Omit<UsedBy, "model">): Promise<boolean>;
  /**
   * Finds the token or money limit with the smallest share left, from 0 to 1. Ignores limits per minute, because
   * they reset soon. Undefined if no limit applies or the usage is unknown. Never rejects.
   */
  readScarcest(by: Omit<UsedBy, "model">): Promise<{ left: number; limit: string } | undefined>;
  currency(): string;
}

export interface QuotaOptions {
  right: Right;
  policy(): Policy;
  counters: Counters;
  usage: Pick<Usage, "toAdditions">;
  pseudonym(platform: string, userId: string): string;
  /** Unix milliseconds. */
  now(): number;
  log: Logger;
}

const LEAST: Record<"chat" | "pictures", Record<QuotaMeasure, number>> = {
  chat: { tokens: MIN_ANSWER_TOKENS, requests: 1, pictures: 0, money: 1 },
  pictures: { tokens: 0, requests: 1, pictures: 1, money: 1 },
};

export function createQuota(options: QuotaOptions): Quota {
  const { right, policy, counters, usage, pseudonym, now, log } = options;
  const reckoning = createReckoning(policy);

  function toAsker({ author, reply: { platform, channelId, workspaceId } }: Omit<UsedBy, "model">) {
    const workspace = workspaceId === undefined ? undefined : { workspaceId };
    return { platform, pseudonym: pseudonym(platform, author.id), channelId, ...workspace };
  }

  function limitsOf(by: Omit<UsedBy, "model">): QuotaLimit[] {
    return toLimits(policy().quotas, toAsker(by), now());
  }

  async function read(by: Omit<UsedBy, "model">): Promise<Standing[]> {
    const limits = limitsOf(by);
    if (limits.length === 0) return [];
    const rows = await counters.read([...new Set(limits.flatMap(({ row, subject }) => [row, toLiftedRow(subject)]))]);
    return limits.map((limit) => {
      const { row, measure, subject } = limit;
      const counts = rows.get(row) ?? {};
      const isLifted = (rows.get(toLiftedRow(subject))?.["lifted"] ?? 0) > 0;
      return { ...limit, used: counts[measure] ?? 0, held: counts[toReservedName(measure)] ?? 0, isLifted };
    });
  }

  /** Counts a refused request too, because a person could otherwise send any number of refused requests. */
  function toAdditions(request: Need, limits: readonly QuotaLimit[], outcome: Spent | Unspent): Addition[] {
    if (outcome === "unsent") return [];
    const need = outcome === "refused" ? request : toAnswered(request, outcome);
    const used = outcome === "refused" ? { requests: 1 } : reckoning.toAmounts(need, outcome);
    const measured = reckoning.toMeasured(need, used);
    return [...usage.toAdditions(need.by, used), ...toLimitAdditions(limits, measured, now())];
  }

  return {
    currency: reckoning.currency,
    async reserve(need, signal) {
      const id = randomUUID();
      const limits = limitsOf(need.by);
      let reserved: Addition[] | undefined;
      async function settle(outcome: Spent | Unspent, answer?: { id: string; by: UsedBy }): Promise<void> {
        const additions = toAdditions(need, limits, outcome);
        const onFailure = (err: unknown) => log.warn({ err, id: need.id }, "usage could not be counted");
        const corrections = reserved && toCorrections(additions, reserved);
        const also = answer && { id: answer.id, additions: usage.toAdditions(answer.by, { answers: 1 }) };
        await persist(() => counters.add(id, additions, corrections, also), onFailure);
      }
      if (limits.length === 0) {
        await checkRight(right);
        signal.throwIfAborted();
        return { maxTokens: need.maxTokens, settle };
      }
      try {
        const given = await reserveMost({ ...options, reckoning }, need, limits, (bounds, additions) => {
          reserved = additions;
          const write = () => counters.reserve({ id, bounds, additions });
          // Retry, so that a short outage of the store neither lifts a limit nor refuses a request.
          return retry(write, { pausesMs: PATIENT_PAUSES_MS, mayPass: isStoreOutage }, signal);
        });
        return { ...given, settle };
      } catch (err) {
        const mayBeReserved = !(err instanceof QuotaError || err instanceof FencedError);
        // Undo the reservation, because the store may have made it although the response was lost.
        if (mayBeReserved) void settle("unsent");
        signal.throwIfAborted();
        if (!mayBeReserved) throw err;
        log.warn({ err, id: need.id }, "the tokens of a request could not be reserved");
        throw new QuotaError(STORE_IS_AWAY);
      }
    },
    async findRefusal(by, what) {
      try {
        const full = (await read(by)).find((one) => !one.isLifted && isFull(one, LEAST[what][one.measure]));
        if (full === undefined) return undefined;
        const room = full.most - full.used - full.held;
        const wording = { currency: reckoning.currency(), now: now() };
        return toRefusal(what === "pictures", { limit: full, room }, LEAST[what][full.measure], wording).message;
      } catch (err) {
        log.warn({ err }, "the remaining amount of a limit could not be read");
        return undefined;
      }
    },
    read,
    readScarcest: async (by) => toScarcest(await read(by).catch(() => []), reckoning.currency()),
    async lift(scope, by) {
      const subject = toSubject(scope, toAsker(by));
      if (subject === undefined || !limitsOf(by).some((limit) => limit.scope === scope)) return false;
      // Remove the row first, because an addition to an existing row would not extend its TTL.
      await counters.remove(toLiftedRow(subject));
      await counters.add(randomUUID(), [{ row: toLiftedRow(subject), counts: { lifted: 1 }, ttlMs: LIFTED_MS }]);
      return true;
    },
  };
}

/** True if less than `least` is left. If `least` is 0, the limit is never full, even if it is exceeded. */
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

/** Replaces the requested model with the model that answered, because that model determines the price. */
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

interface ReserveDeps extends Pick<QuotaOptions, "policy" | "usage" | "now"> {
  reckoning: Reckoning;
}

/** Counts only the estimated prompt as usage, but the maximum possible usage against limits. */
function toEstimate(
  { usage, now, reckoning }: ReserveDeps,
  need: Need,
  limits: readonly QuotaLimit[],
  most: Measured,
): Addition[] {
  const { promptTokens } = need;
  const request = reckoning.toAmounts(need, { promptTokens, completionTokens: 0, isEstimated: true });
  const reserved = Object.fromEntries(MEASURES.map((measure) => [toReservedName(measure), most[measure]]));
  return [...usage.toAdditions(need.by, request), ...toLimitAdditions(limits, reserved, now())];
}

/** Reserves quota for the longest answer that fits. `tryOut` resolves to undefined if the amounts fit all limits. */
async function reserveMost(
  deps: ReserveDeps,
  request: Need,
  all: readonly QuotaLimit[],
  tryOut: (bounds: Bound[], additions: Addition[]) => Promise<number[] | undefined>,
): Promise<Omit<Reservation, "settle">> {
  const { policy, now, reckoning } = deps;
  const need = { ...request, promptTokens: Math.ceil(request.promptTokens * PROMPT_MARGIN) };
  const usual = need.maxTokens ?? policy().quotas?.answerTokens ?? ANSWER_TOKENS;
  const isLong = need.pictures === undefined && all.some(({ measure }) => measure === "tokens" || measure === "money");
  // Ignore limits that the request does not use, because they may already be reached.
  const concerned = reckoning.toMost(need, usual);
  const limits = all.filter(({ measure }) => concerned[measure] > 0);
  let answerTokens = isLong ? usual : 0;
  let tight: string | undefined;
  for (let tries = 1; ; tries++) {
    const most = reckoning.toMost(need, answerTokens);
    const rooms = await tryOut(
      limits.map((limit) => toBound(limit, most)),
      toEstimate(deps, request, all, most),
    );
    const short = limits.flatMap((limit, index) => {
      const room = rooms?.[index] ?? Number.POSITIVE_INFINITY;
      return room < most[limit.measure] ? [{ limit, room, tokens: reckoning.toAffordable(need, limit, room) }] : [];
    });
    const [first] = short;
    if (first === undefined) {
      const maxTokens = isLong ? answerTokens : need.maxTokens;
      return { maxTokens, ...(tight !== undefined && { tight }) };
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

function toBound({ row, measure, most, subject }: QuotaLimit, needed: Measured): Bound {
  const counts = [measure, toReservedName(measure)];
  return { row, counts, most, by: needed[measure], unless: toLiftedRow(subject) };
}

/** Returns the name under which a limit's row counts open reservations. */
function toReservedName(measure: QuotaMeasure): string {
  return `reserved:${measure}`;
}

function toRefusal(
  isPicture: boolean,
  { limit, room }: { limit: QuotaLimit; room: number },
  needed: number,
  { currency, now }: { currency: string; now: number },
): QuotaError {
  const { measure, endsAt, most } = limit;
  const rest = describeAmount(measure, room, currency);
  const end = isPicture ? "so I created no image" : "so I didn't answer";
  const frees = most === 0 ? "" : ` It resets ${describeTime(endsAt, now)}.`;
  const may = describeAmount(measure, needed, currency);
  const state = room > 0 ? `is nearly reached: ${rest} left, but your request could need up to ${may}` : "is reached";
  return new QuotaError(`${describeLimit(limit, currency)} ${state}, ${end}.${frees}`);
}
