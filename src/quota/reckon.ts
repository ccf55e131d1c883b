import type { Policy } from "../config/policy/policy-file.ts";
import type { QuotaMeasure } from "../config/policy/quotas.ts";
import type { Amounts, UsedBy } from "../usage/usage.ts";
import { BILLIONTHS, costOf, priceOf, type Spent } from "./cost.ts";
import type { QuotaLimit } from "./limits.ts";

/** The currency of the gateway's costs if the policy has no prices. */
const USUAL_CURRENCY = "USD";

export interface Need {
  /** The id of the turn or job, for the log. */
  id: string;
  by: UsedBy & { model: string };
  /** An estimate. The reservation adds a margin. */
  promptTokens: number;
  /** Requested maximum length of the answer, in tokens; absent: no limit. */
  maxTokens?: number | undefined;
  /** Number of requested images. Absent for a text answer. */
  pictures?: number;
}

export type Measured = Record<QuotaMeasure, number>;

/** Calculates what requests need and use, with the policy's prices. */
export interface Reckoning {
  currency(): string;
  toAmounts(need: Need, spent: Spent): Partial<Amounts>;
  /**
   * Returns the amounts that limits count. Token limits do not count an image's tokens, although these have a price.
   */
  toMeasured(need: Need, used: Partial<Amounts>): Measured;
  /** Returns the maximum that a request with an answer of this length can use. */
  toMost(need: Need, answerTokens: number): Measured;
  /** Returns how many answer tokens fit into the remaining amount of a limit; 0 if the limit does not count tokens. */
  toAffordable(need: Need, limit: QuotaLimit, left: number): number;
}

export function createReckoning(policy: () => Policy): Reckoning {
  const currency = () => policy().prices?.currency ?? USUAL_CURRENCY;
  const priceFor = ({ by }: Need) => priceOf(policy().prices, by.model);

  function toMost(need: Need, answerTokens: number): Measured {
    const { promptTokens, pictures = 0 } = need;
    const cost = costOf({ promptTokens, completionTokens: answerTokens, pictures }, priceFor(need)) ?? 0;
    return { tokens: pictures > 0 ? 0 : promptTokens + answerTokens, requests: 1, pictures, money: cost };
  }

  return {
    currency,
    toMost,
    toAmounts(need, spent) {
      const { promptTokens, cachedTokens = 0, completionTokens, isEstimated, pictures = need.pictures ?? 0 } = spent;
      const cost = costOf({ ...spent, pictures }, priceFor(need));
      return {
        requests: 1,
        promptTokens,
        cachedTokens,
        completionTokens,
        estimatedTokens: isEstimated ? promptTokens + completionTokens : 0,
        pictures,
        ...(cost === undefined ? { unpriced: 1 } : { costs: { [currency()]: cost } }),
      };
    },
    toMeasured(need, { promptTokens = 0, completionTokens = 0, pictures = 0, requests = 0, costs }) {
      const tokens = need.pictures === undefined ? promptTokens + completionTokens : 0;
      return { tokens, requests, pictures, money: costs?.[currency()] ?? 0 };
    },
    toAffordable(need, { measure }, left) {
      if (measure === "tokens") return left - need.promptTokens;
      const output = priceFor(need)?.output ?? 0;
      if (measure !== "money" || output === 0 || need.pictures !== undefined) return 0;
      return Math.floor((left - toMost(need, 0).money) / ((output * BILLIONTHS) / 1_000_000));
    },
  };
}
