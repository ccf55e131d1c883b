import type { Policy } from "./policy-file.ts";
import { MEASURES, type QuotaMeasure, type QuotaScope, SCOPES, WINDOWS } from "./quotas.ts";

const USUAL_CURRENCY = "USD";
const OWNERS: Record<QuotaScope, string> = {
  person: "for each person",
  channel: "for each channel",
  workspace: "for each workspace",
  all: "for everyone together",
};

/** Describes each limit, for example "for each person 20 USD per month". */
export function describeQuotas({ quotas, prices }: Policy): string[] {
  const currency = prices?.currency ?? USUAL_CURRENCY;
  const toAmount = (measure: QuotaMeasure, most: number) =>
    `${most.toLocaleString("en-US")} ${measure === "money" ? currency : measure}`;
  return SCOPES.flatMap((scope) =>
    WINDOWS.flatMap((window) => {
      const amounts = quotas?.[scope]?.[window];
      return MEASURES.flatMap((measure) => {
        const most = amounts?.[measure];
        return most === undefined ? [] : [`${OWNERS[scope]} ${toAmount(measure, most)} per ${window}`];
      });
    }),
  );
}

/** Returns the `models` without a price. For these models, a money limit counts only costs that the gateway reports. */
export function findUnpriced<T extends { model: string }>({ quotas, prices }: Policy, models: readonly T[]): T[] {
  const hasMoney = SCOPES.some((scope) => WINDOWS.some((window) => quotas?.[scope]?.[window]?.money !== undefined));
  const priced = prices?.models ?? {};
  return hasMoney && !("*" in priced) ? models.filter(({ model }) => !(model in priced)) : [];
}
