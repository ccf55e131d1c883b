/**
 * - `rate-limited`: a call above a limit.
 * - `double-post`: a second message for the same purpose.
 * - `backwards`: a message that shows less than before.
 * - `late-ack`: a delivery that the app acknowledged too late or never.
 * - `ping`: text from the app that would notify people.
 * - `dead-stream`: an append to a stream that the app knows has ended.
 * - `revoked-token`: a call with a token that the app knows is revoked.
 * - `open-task`: a stream that ended during a task, and whose message was not rewritten.
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
  sentence: string;
  atMs: number;
}

export interface Violations {
  readonly all: readonly Violation[];
  record(kind: ViolationKind, sentence: string): void;
  /** Declares that violations of these kinds are expected, including recorded ones. */
  allow(...kinds: ViolationKind[]): void;
  /** Throws an error that lists all unexpected violations. */
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
