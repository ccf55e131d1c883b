import type { ModelPrices, Prices } from "../config/policy/prices.ts";

/** Money is counted in billionths, which a price for a million tokens divides evenly enough. */
export const BILLIONTHS = 1_000_000_000;
/** Billionths for one token, at a price of 1 for a million. */
const PER_TOKEN = BILLIONTHS / 1_000_000;

/** The amounts that one request used, by the gateway's count or by estimate. */
export interface Spent {
  promptTokens: number;
  /** The part of the prompt that the gateway had read before. */
  cachedTokens?: number | undefined;
  completionTokens: number;
  isEstimated: boolean;
  pictures?: number;
  /** The one that answered, where it is not the one that was asked. */
  model?: string | undefined;
  /** In the currency of the prices, where the gateway says it. */
  cost?: number | undefined;
}

/** Undefined for a model without a price. */
export function priceOf(prices: Prices | undefined, model: string): ModelPrices | undefined {
  return prices?.models[model] ?? prices?.models["*"];
}

/** In billionths, rounded up; undefined where neither the gateway nor the prices tell. */
export function costOf(spent: Omit<Spent, "isEstimated">, price: ModelPrices | undefined): number | undefined {
  if (spent.cost !== undefined) return Math.ceil(spent.cost * BILLIONTHS);
  if (price === undefined) return undefined;
  const { promptTokens, cachedTokens = 0, completionTokens, pictures = 0 } = spent;
  const { input = 0, cachedInput = input, output = 0, picture } = price;
  if (pictures > 0 && picture !== undefined) return Math.ceil(pictures * picture * BILLIONTHS);
  const cached = Math.min(cachedTokens, promptTokens);
  const tokens = (promptTokens - cached) * input + cached * cachedInput + completionTokens * output;
  return Math.ceil(tokens * PER_TOKEN);
}
