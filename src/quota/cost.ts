import type { ModelPrices, Prices } from "../config/policy/prices.ts";

/** Money is counted in billionths, because one token costs very little. */
export const BILLIONTHS = 1_000_000_000;
/** The price per token in billionths, if a million tokens cost 1. */
const PER_TOKEN = BILLIONTHS / 1_000_000;

/** The usage of one request, reported by the gateway or estimated. */
export interface Spent {
  promptTokens: number;
  cachedTokens?: number | undefined;
  completionTokens: number;
  isEstimated: boolean;
  pictures?: number;
  /** The model that answered, if it differs from the requested one. */
  model?: string | undefined;
  /** The cost that the gateway reported, in the currency of the prices. */
  cost?: number | undefined;
}

/** Why a request used no tokens: the gateway refused it or never got it. */
export type Unspent = "refused" | "unsent";

/** Undefined if the model has no price. */
export function priceOf(prices: Prices | undefined, model: string): ModelPrices | undefined {
  return prices?.models[model] ?? prices?.models["*"];
}

/** Returns the cost in billionths, rounded up; undefined if neither the gateway nor the prices determine it. */
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
