import type { Story } from "../../insight/story.ts";

/** For example "420 ms", "3.2 s", "4 min 10 s", "2 h 5 min", "3 days". */
export function describeMs(ms: number): string {
  if (ms < 995) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export function describeCount(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}

/** Formats a count briefly, so that it fits on an axis. */
export function describeShort(count: number): string {
  return new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 }).format(count);
}

export function describeCost(cost: number): string {
  return cost.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: cost < 1 ? 4 : 2 });
}

export function describeBytes(bytes: number): string {
  return `${Math.round(bytes / 1_048_576).toLocaleString("en-US")} MiB`;
}

export function describeTime(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB");
}

export function describeMoment(at: number): string {
  const date = new Date(at);
  const day = date.toDateString() === new Date().toDateString() ? "" : `${date.toISOString().slice(0, 10)} `;
  return `${day}${describeTime(at)}`;
}

/** Labels for outcomes that end without a sentence for users. */
const OUTCOMES: Readonly<Record<string, string>> = {
  complete: "Answered",
  stopped: "Stopped on request",
  waiting: "Waiting for approval",
  refused: "Refused",
  length: "Hit the length limit",
  filtered: "Stopped by a content filter",
  interrupted: "Broke off",
  shutdown: "Palaver was shut down",
  failed: "Failed",
};

export function isFine(outcome: string): boolean {
  return ["complete", "stopped", "waiting", "refused"].includes(outcome);
}

export function isAnswered(outcome: string): boolean {
  return outcome === "complete" || outcome === "stopped";
}

/** Says why a turn ended. For a failure or a refusal, returns the first sentence that users saw. */
export function describeReason({ outcome = "", note = "" }: Pick<Story, "outcome" | "note">): string {
  const [sentence = ""] = /^.+?[.!?](?=\s|$)/.exec(note) ?? [];
  const words = isFine(outcome) && outcome !== "refused" ? "" : sentence.replaceAll("`", "").replace(/\.$/, "");
  return words || (OUTCOMES[outcome] ?? outcome);
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
