import type { QuotaMeasure, QuotaScope } from "../config/policy/quotas.ts";
import { describeMoney } from "../usage/usage.ts";
import type { QuotaLimit } from "./limits.ts";

const OWNERS: Record<QuotaScope, string> = {
  person: "Your limit",
  channel: "This channel's limit",
  workspace: "This workspace's limit",
  all: "My limit for everybody together",
};

/** Such as "Your limit of 10,000 tokens per day". */
export function describeLimit({ scope, window, measure, most }: QuotaLimit, currency: string): string {
  return `${OWNERS[scope]} of ${describeAmount(measure, most, currency)} per ${window}`;
}

export function describeAmount(measure: QuotaMeasure, amount: number, currency: string): string {
  if (measure === "money") return describeMoney(amount, currency);
  const noun = amount === 1 ? measure.slice(0, -1) : measure;
  return `${amount.toLocaleString("en-US")} ${noun}`;
}

/** Such as "at 14:00 UTC", or with the day where that is another one. */
export function describeTime(at: number, now: number): string {
  const [day = "", time = ""] = new Date(at).toISOString().split("T");
  const clock = `at ${time.slice(0, 5)} UTC`;
  return new Date(now).toISOString().startsWith(day) ? clock : `on ${day} ${clock}`;
}
