import { SinkError } from "../../../src/port/errors.ts";

/** Of the fifty calls a minute that Slack lets an app read messages with, the rest is for reading what people said. */
const CALLS = 30;
const WINDOW_MS = 60_000;

/** Keeps the looks at messages within what Slack allows, for each workspace by itself. */
export interface ReadingGate {
  /** Throws a `SinkError` instead of a call that Slack would refuse, or that others need more. */
  enter(teamId: string): void;
  /** Slack wants no more of them for this long. */
  close(teamId: string, waitMs: number): void;
}

export function createReadingGate(now: () => number): ReadingGate {
  const calls = new Map<string, number[]>();
  const closedUntil = new Map<string, number>();

  return {
    enter(teamId) {
      const recent = (calls.get(teamId) ?? []).filter((at) => at > now() - WINDOW_MS);
      if ((closedUntil.get(teamId) ?? 0) > now() || recent.length >= CALLS) throw toProblem();
      calls.set(teamId, [...recent, now()]);
    },
    close: (teamId, waitMs) => void closedUntil.set(teamId, now() + waitMs),
  };
}

/** No refusal for the rate: what is written is limited apart. */
function toProblem(): SinkError {
  const message = "Whether this was posted already cannot be looked up at the moment: Slack allows too few looks.";
  return new SinkError("unavailable", message);
}
