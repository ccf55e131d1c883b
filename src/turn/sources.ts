import type { Step } from "../port/sink.ts";
import { joinSources, type Source } from "../text/sources.ts";
import type { TurnLedger } from "../tools/ledger.ts";

export interface AnswerSources {
  /**
   * Sets the pages that the gateway cites in a round. They replace earlier ones of that round. Round 0 has the pages
   * that were cited to an earlier process.
   */
  cite(round: number, sources: readonly Source[]): void;
  /** Shows an earlier answer's pages instead. */
  replace(sources: readonly Source[]): void;
  /** The pages that the gateway cited, of all rounds. */
  cited(): Source[];
  /** The cited pages, then the others that tools read. A page keeps its number while the answer grows. */
  all(): Source[];
}

interface AnswerSourcesOptions {
  /** The pages that were cited to an earlier process. */
  before: readonly Source[];
  ledger: Pick<TurnLedger, "rounds">;
  /** The steps have the pages that tools read if the ledger is unavailable. */
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
