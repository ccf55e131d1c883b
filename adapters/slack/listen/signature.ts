/** Slack signs as it sends; a clock may be that much off, and a request that much old. */
const MAX_SKEW_S = 5 * 60;
const MAX_REMEMBERED = 10_000;

type Headers = Readonly<Record<string, readonly string[] | undefined>>;

/** Why a request cannot be Slack's, whatever its body is; undefined where Bolt can judge that by its signature. */
export function findHeaderProblem(headers: Headers, nowMs: number): string | undefined {
  for (const name of ["x-slack-signature", "x-slack-request-timestamp"]) {
    if ((headers[name]?.length ?? 0) > 1) return `it has the header ${name} more than once`;
  }
  const [signature = ""] = headers["x-slack-signature"] ?? [];
  const [timestamp = ""] = headers["x-slack-request-timestamp"] ?? [];
  // Slack asks now and then, unsigned, whether there is a certificate; Bolt lets that through with nothing in it.
  if (signature === "" && timestamp === "") return undefined;
  if (!/^v0=[0-9a-f]{64}$/.test(signature)) return "it has no signature";
  if (!/^\d{1,12}$/.test(timestamp)) return "its timestamp is no number of seconds";
  const ageS = nowMs / 1_000 - Number(timestamp);
  if (ageS > MAX_SKEW_S) return "it is too old";
  return ageS < -MAX_SKEW_S ? "its time lies in the future" : undefined;
}

/** The signatures of requests that were taken. */
export interface Replays {
  has(signature: string): boolean;
  add(signature: string): void;
}

/** Remembers a signature for as long as its time could still be right. */
export function createReplays(now: () => number): Replays {
  const takenAt = new Map<string, number>();
  return {
    has: (signature) => takenAt.has(signature),
    add(signature) {
      takenAt.set(signature, now());
      for (const [oldest, atMs] of takenAt) {
        if (takenAt.size <= MAX_REMEMBERED && now() - atMs < 2 * MAX_SKEW_S * 1_000) break;
        takenAt.delete(oldest);
      }
    },
  };
}
