import type { Policy } from "../config/policy/policy-file.ts";
import type { QuotaMeasure } from "../config/policy/quotas.ts";
import type { Amounts, UsedBy } from "../usage/usage.ts";
import { BILLIONTHS, costOf, priceOf, type Spent } from "./cost.ts";
import type { QuotaLimit } from "./limits.ts";

/** The currency of costs that the gateway reports, when the policy has no prices. */
const USUAL_CURRENCY = "USD";

export interface Need {
  /** Names the piece of work; a later attempt uses the same name. */
  id: string;
  by: UsedBy & { model: string };
  /** Estimated; somewhat more is reserved. */
  promptTokens: number;
  /** The longest answer that is asked for; absent: any. */
  maxTokens?: number | undefined;
  /** Absent for an answer in words. */
  pictures?: number;
}

type Measured = Record<QuotaMeasure, number>;

/** Arithmetic of what requests need and use, at the prices of the policy. */
export interface Reckoning {
  /** The currency of the policy's prices. */
  currency(): string;
  toAmounts(need: Need, spent: Spent): Partial<Amounts>;
  /** The amounts that limits count. The tokens of pictures have a price, but no limit on tokens counts them. */
  toMeasured(need: Need, used: Partial<Amounts>): Measured;
  /** The most that a request with an answer of this length can use. */
  toMost(need: Need, answerTokens: number): Measured;
  /** Tokens of an answer that what is left of a limit pays for; 0 where its length does not matter. */
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
