/**
 * `rate-limited`: a call that had to be refused. `double-post`: a second message for the same thing. `backwards`: a
 * message that shows less than it did. `late-ack`: a delivery not acknowledged in time, or not at all. `ping`: text of
 * the app that would notify people. `dead-stream`: an append to a stream that the app knows to be over.
 * `revoked-token`: a call with a token that was refused for good before. `open-task`: a stream that was ended while one
 * of its tasks goes on, and was not written anew.
 */
export type ViolationKind =
  | "rate-limited"
  | "double-post"
  | "backwards"
  | "late-ack"
  | "ping"
  | "dead-stream"
  | "revoked-token"
  | "open-task";

export interface Violation {
  kind: ViolationKind;
  /** What happened, in plain words. */
  sentence: string;
  atMs: number;
}

export interface Violations {
  readonly all: readonly Violation[];
  record(kind: ViolationKind, sentence: string): void;
  /** From here on, and for what was recorded already, violations of these kinds are expected. */
  allow(...kinds: ViolationKind[]): void;
  /** Throws one error that tells every violation of a kind that is not allowed. */
  assertClean(options?: { allow?: readonly ViolationKind[] }): void;
}

export function createViolations(now: () => number, changed: () => void): Violations {
  const all: Violation[] = [];
  const allowed = new Set<ViolationKind>();

  return {
    all,
    record(kind, sentence) {
      all.push({ kind, sentence, atMs: now() });
      changed();
    },
    allow(...kinds) {
      for (const kind of kinds) allowed.add(kind);
    },
    assertClean({ allow = [] } = {}) {
      const found = all.filter(({ kind }) => !allowed.has(kind) && !allow.includes(kind));
      if (found.length === 0) return;
      const sentences = found.map(({ kind, sentence }) => `- ${kind}: ${sentence}`);
      throw new Error(`The app broke the rules of Slack ${found.length} times:\n${sentences.join("\n")}`);
    },
  };
}
