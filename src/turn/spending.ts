import type { TokenUsage } from "../gateway/chunks.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Spent } from "../quota/cost.ts";
import type { Quota } from "../quota/quota.ts";
import type { Amounts, Usage } from "../usage/usage.ts";
import type { TurnRecord } from "./record.ts";
import type { Answered, TurnDeps } from "./turn.ts";

/** The tokens of one attempt: reserved before each request, counted after it. */
export interface Spending extends Pick<TurnDeps, "reserve"> {
  used: Readonly<Pick<Amounts, "promptTokens" | "completionTokens" | "estimatedTokens">>;
  /** The limit that leaves the latest request less room than usual, in words. */
  tight(): string | undefined;
  /** Counts the answer: once, however often it is begun anew. */
  noteAnswer(): Promise<void>;
  /** Resolves when everything is counted, or cannot be. */
  settled(): Promise<void>;
}

export interface SpendingDeps {
  quota: Pick<Quota, "reserve">;
  usage: Pick<Usage, "note">;
  metrics: Pick<Metrics, "tokens">;
}

/** `maxTokens`: the longest answer, where the channel has a setting. */
export function createSpending(
  { quota, usage, metrics }: SpendingDeps,
  { id, edition, author, reply }: TurnRecord,
  { model, maxTokens }: { model: string; maxTokens: number | undefined },
): Spending {
  const by = { author, reply, model };
  const used = { promptTokens: 0, completionTokens: 0, estimatedTokens: 0 };
  const settling: Array<Promise<void>> = [];
  let tight: string | undefined;

  function note({ prompt_tokens, completion_tokens }: TokenUsage, isEstimated: boolean): void {
    metrics.tokens("prompt", prompt_tokens, isEstimated);
    metrics.tokens("completion", completion_tokens, isEstimated);
    used.promptTokens += prompt_tokens;
    used.completionTokens += completion_tokens;
    if (isEstimated) used.estimatedTokens += prompt_tokens + completion_tokens;
  }

  return {
    used,
    tight: () => tight,
    noteAnswer: () => usage.note(`answer:${id}:${edition}`, by, { answers: 1 }),
    settled: async () => void (await Promise.all(settling)),
    async reserve({ number, promptTokens }, signal) {
      const need = { id: `${id}:${edition}:${number}`, by, promptTokens, maxTokens };
      const reservation = await quota.reserve(need, signal);
      tight = reservation.tight;
      return {
        maxTokens: reservation.maxTokens,
        confirm: reservation.confirm,
        // Nobody waits for it: a slow store must not slow the answer down.
        settle(spent) {
          if (spent !== undefined) note(spent.usage, spent.isEstimated);
          settling.push(reservation.settle(spent && toSpent(spent)));
        },
      };
    },
  };
}

function toSpent({ usage, isEstimated, model }: Answered): Spent {
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens, cached_tokens: cachedTokens, cost } = usage;
  return { promptTokens, completionTokens, cachedTokens, isEstimated, cost, model };
}
