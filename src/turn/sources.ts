import type { Step } from "../port/sink.ts";
import { joinSources, type Source } from "../text/sources.ts";
import type { TurnLedger } from "../tools/ledger.ts";

export interface AnswerSources {
  /**
   * Sets the pages that the gateway cites in a round. They replace earlier pages of that round. Round 0 has the pages
   * that the gateway cited to an earlier process.
   */
  cite(round: number, sources: readonly Source[]): void;
  /** Uses the pages of an earlier answer, because that answer is shown instead. */
  replace(sources: readonly Source[]): void;
  /** The pages that the gateway cited in all rounds. */
  cited(): Source[];
  /** The cited pages, followed by other pages that tools have read. A page keeps its number while the answer grows. */
  all(): Source[];
}

interface AnswerSourcesOptions {
  /** The pages that the gateway cited to an earlier process. */
  before: readonly Source[];
  ledger: Pick<TurnLedger, "rounds">;
  /** If the ledger is unavailable, only the steps know which pages tools have read. */
  steps: { readonly all: readonly Step[] };
}

export function createAnswerSources({ before, ledger, steps }: AnswerSourcesOptions): AnswerSources {
  const rounds = new Map<number, readonly Source[]>([[0, before]]);
  let cited = joinSources(before);
  let written: Source[] | undefined;

  return {
    cite(round, sources) {
      rounds.set(round, sources);
      cited = joinSources(...rounds.values());
    },
    replace: (sources) => void (written = [...sources]),
    cited: () => written ?? cited,
    all() {
      if (written !== undefined) return written;
      const calls = ledger.rounds.flatMap((round) => round.calls);
      return joinSources(cited, ...[...calls, ...steps.all].map(({ sources = [] }) => sources));
    },
  };
}
