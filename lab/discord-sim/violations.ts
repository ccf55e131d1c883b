/**
 * - `rate-limited`: a call although a counter was empty.
 * - `early-retry`: a call before the end of a requested wait.
 * - `double-post`: the same message twice.
 * - `stale-edit`: an edit that replaces newer text with older text.
 * - `overlapping-edits`: two edits of one message at the same time.
 * - `expired-interaction`: a call after the token expired.
 * - `late-acknowledgement`: an acknowledgement after more than three seconds.
 * - `ping`: the bot's text notified a user.
 * - `invalid-request`: a real 401 or 403.
 * - `unknown-route`: a call that is not simulated.
 * - `gateway-abuse`: too many frames or sessions.
 * - `early-identify`: sessions that started faster than Discord allows.
 * - `simulator-failure`: a bug in the simulator itself.
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
  sentence: string;
  /** When the bot broke the rule. For something late, when it was due. */
  atMs: number;
}

/** How many violations of each kind a test expects; `Infinity` allows any number. */
export type Allowance = Partial<Record<ViolationKind, number>>;

export interface Violations {
  readonly list: readonly Violation[];
  record(kind: ViolationKind, sentence: string, atMs?: number): void;
  /** Throws an error about each kind that has more violations than expected. */
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
