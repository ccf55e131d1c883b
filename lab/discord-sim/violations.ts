/**
 * `rate-limited`: a counter was empty. `early-retry`: a call came before the end of a wait it had been
 * told. `double-post`: the same message twice. `stale-edit`: older text over newer. `overlapping-edits`: two edits of one
 * message at once. `expired-interaction`: a call after the token's end. `late-acknowledgement`: later than three
 * seconds. `ping`: text of the bot notified somebody. `invalid-request`: an honest 401 or 403. `unknown-route`: a call that is not
 * simulated. `gateway-abuse`: too many sends or sessions. `early-identify`: sessions begun faster than Discord allows. `simulator-failure`: a bug of the simulator itself.
 */
export type ViolationKind =
  | "rate-limited"
  | "early-retry"
  | "double-post"
  | "stale-edit"
  | "overlapping-edits"
  | "expired-interaction"
  | "late-acknowledgement"
  | "ping"
  | "invalid-request"
  | "unknown-route"
  | "gateway-abuse"
  | "early-identify"
  | "simulator-failure";

export interface Violation {
  kind: ViolationKind;
  /** What the bot did, as a sentence. */
  sentence: string;
  /** The moment at which the rule was broken: of what came too late, when it was due. */
  atMs: number;
}

/** How many of a kind a test expects; `Infinity` for any number. */
export type Allowance = Partial<Record<ViolationKind, number>>;

export interface Violations {
  readonly list: readonly Violation[];
  record(kind: ViolationKind, sentence: string, atMs?: number): void;
  /** Throws an error that names every violation of a kind of which there are more than allowed. */
  assertClean(options?: { allow?: Allowance }): void;
}

export function createViolations(now: () => number): Violations {
  const list: Violation[] = [];
  return {
    list,
    record: (kind, sentence, atMs = now()) => void list.push({ kind, sentence, atMs }),
    assertClean({ allow = {} } = {}) {
      const counts = new Map<ViolationKind, number>();
      for (const { kind } of list) counts.set(kind, (counts.get(kind) ?? 0) + 1);
      const found = list.filter(({ kind }) => (counts.get(kind) ?? 0) > (allow[kind] ?? 0));
      if (found.length === 0) return;
      const lines = found.map(({ kind, sentence }) => `- ${kind}: ${sentence}`);
      throw new Error(`The bot broke ${found.length} of Discord's rules:\n${lines.join("\n")}`);
    },
  };
}
