import type { UsedBy } from "../usage/usage.ts";
import type { Quota } from "./quota.ts";
import { describeLimit } from "./wording.ts";

/** Limits of a minute guard against floods; nobody saves for the next one. */
const NO_BUDGET = "minute";

/** The limit of tokens or money of which the least is left, from 0 to 1; undefined without one. Never rejects: not known, it is undefined. */
export async function readBudget(
  quota: Pick<Quota, "read" | "currency">,
  by: Pick<UsedBy, "author" | "reply">,
): Promise<{ left: number; limit: string } | undefined> {
  const standings = await quota.read(by).catch(() => []);
  const budgets = standings
    .filter(
      ({ measure, window, isLifted }) =>
        (measure === "tokens" || measure === "money") && window !== NO_BUDGET && !isLifted,
    )
    .map((one) => ({
      left: one.most === 0 ? 0 : Math.max(0, one.most - one.used - one.held) / one.most,
      limit: describeLimit(one, quota.currency()),
    }));
  return budgets.toSorted((one, other) => one.left - other.left)[0];
}
