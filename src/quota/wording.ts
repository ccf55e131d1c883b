import type { QuotaMeasure, QuotaScope } from "../config/policy/quotas.ts";
import { describeMoney } from "../usage/usage.ts";
import type { QuotaLimit, Standing } from "./limits.ts";

const OWNERS: Record<QuotaScope, string> = {
  person: "Your limit",
  channel: "This channel's limit",
  workspace: "This workspace's limit",
  all: "The limit for everyone together",
};

export function describeLimit(
  { scope, window, measure, most }: QuotaLimit,
  currency: string,
  owner = OWNERS[scope],
): string {
  return `${owner} of ${describeAmount(measure, most, currency)} per ${window}`;
}

export function describeAmount(measure: QuotaMeasure, amount: number, currency: string): string {
  if (measure === "money") return isTiny(amount) ? describeTiny(amount, currency) : describeMoney(amount, currency);
  const nouns = measure === "pictures" ? "images" : measure;
  const noun = amount === 1 ? nouns.slice(0, -1) : nouns;
  return `${amount.toLocaleString("en-US")} ${noun}`;
}

/** True for an amount below a millionth, which would be shown as 0.00 and look wrong next to a limit. */
function isTiny(billionths: number): boolean {
  return billionths > 0 && billionths < 1_000;
}

function describeTiny(billionths: number, currency: string): string {
  return `${(billionths / 1e9).toLocaleString("en-US", { maximumSignificantDigits: 2, maximumFractionDigits: 9 })} ${currency}`;
}

/** For example "at 14:00 UTC". Includes the date if it is not today. */
export function describeTime(at: number, now: number): string {
  const [day = "", time = ""] = new Date(at).toISOString().split("T");
  const clock = `at ${time.slice(0, 5)} UTC`;
  return new Date(now).toISOString().startsWith(day) ? clock : `on ${day} ${clock}`;
}

/**
 * For example "Your limit of 10,000 tokens per day: 1,200 tokens used, 300 tokens reserved, 8,500 tokens left; it
 * resets at 00:00 UTC."
 */
export function describeStanding(standing: Standing, currency: string, now: number, owner?: string): string {
  const { measure, used, held, most, endsAt, isLifted } = standing;
  const words = describeLimit(standing, currency, owner);
  if (isLifted) return `${words}: lifted for now; ${describeAmount(measure, used, currency)} used.`;
  const reserved = held > 0 ? `, ${describeAmount(measure, held, currency)} reserved` : "";
  const left = describeAmount(measure, Math.max(0, most - used - held), currency);
  return `${words}: ${describeAmount(measure, used, currency)} used${reserved}, ${left} left; it resets ${describeTime(endsAt, now)}.`;
}
