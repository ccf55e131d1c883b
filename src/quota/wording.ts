import type { QuotaMeasure, QuotaScope } from "../config/policy/quotas.ts";
import { describeMoney } from "../usage/usage.ts";
import type { QuotaLimit, Standing } from "./limits.ts";

const OWNERS: Record<QuotaScope, string> = {
  person: "Your limit",
  channel: "This channel's limit",
  workspace: "This workspace's limit",
  all: "My limit for everybody together",
};

/** Such as "Your limit of 10,000 tokens per day". */
export function describeLimit(
  { scope, window, measure, most }: QuotaLimit,
  currency: string,
  owner = OWNERS[scope],
): string {
  return `${owner} of ${describeAmount(measure, most, currency)} per ${window}`;
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

/** Such as "Your limit of 10,000 tokens per day: 1,200 tokens used, 300 tokens reserved; it begins anew at 00:00 UTC." */
export function describeStanding(standing: Standing, currency: string, now: number, owner?: string): string {
  const { measure, used, held, most, endsAt, isLifted } = standing;
  const words = describeLimit(standing, currency, owner);
  if (isLifted) return `${words}: left aside for now; ${describeAmount(measure, used, currency)} used.`;
  const reserved = held > 0 ? `, ${describeAmount(measure, held, currency)} reserved` : "";
  const left = describeAmount(measure, Math.max(0, most - used - held), currency);
  return `${words}: ${describeAmount(measure, used, currency)} used${reserved}, ${left} left; it begins anew ${describeTime(endsAt, now)}.`;
}
