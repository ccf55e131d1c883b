import type { UsedBy } from "../usage/usage.ts";
import type { Quota } from "./quota.ts";
import { describeLimit } from "./wording.ts";

/**
 * Finds the limit of tokens or money of which the least is left, from 0 to 1; undefined where there is none, or where
 * that is not known. Limits of a minute do not count: they guard against floods, and nobody saves for the next minute.
 * Never rejects.
 */
export async function readScarcestLimit(
  quota: Pick<Quota, "read" | "currency">,
  by: Pick<UsedBy, "author" | "reply">,
): Promise<{ left: number; limit: string } | undefined> {
  const standings = await quota.read(by).catch(() => []);
  const limits = standings
    .filter(
      ({ measure, window, isLifted }) =>
        (measure === "tokens" || measure === "money") && window !== "minute" && !isLifted,
    )
    .map((one) => ({
      left: one.most === 0 ? 0 : Math.max(0, one.most - one.used - one.held) / one.most,
      limit: describeLimit(one, quota.currency()),
    }));
  return limits.toSorted((one, other) => one.left - other.left)[0];
}
