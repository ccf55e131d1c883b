import { createHash } from "node:crypto";
import { z } from "zod";
import type { ChatMessage } from "../gateway/chunks.ts";
import { GATEWAY_ERROR_KINDS } from "../gateway/errors.ts";
import type { HistoryEntry } from "../history/record.ts";
import type { Step } from "../port/sink.ts";
import { answerOptions } from "../settings/answer-options.ts";
import { truncate } from "../text/truncate.ts";
import type { LedgerRound } from "../tools/ledger.ts";

/** Most that is kept of one answer: it is written with each of them. */
const MAX_CALLS = 20;
const MAX_ARGUMENT_CHARS = 300;
const MAX_NOTICES = 5;
const MAX_NOTICE_CHARS = 500;

const call = z.object({
  name: z.string(),
  arguments: z.string(),
  /** Unix milliseconds; absent for a call that this attempt did not run. */
  at: z.number().exactOptional(),
  tookMs: z.number().exactOptional(),
  /** Absent for a call that was not run, or belongs to an end before this one. `unknown`: nobody saw its end. */
  state: z.enum(["running", "done", "failed", "unknown"]).exactOptional(),
});

/** The context that the model was given for an answer: ids of messages and no text, which people may erase. */
export const sight = z.object({
  v: z.literal(1),
  at: z.number(),
  model: z.string(),
  /** The model that answered in place of `model`, see `Detour`. */
  detour: z
    .object({ model: z.string(), isSecondGateway: z.boolean(), because: z.enum(GATEWAY_ERROR_KINDS) })
    .exactOptional(),
  options: answerOptions,
  /** A hash of the channel's own persona; absent: it was the configured one. */
  persona: z.string().exactOptional(),
  /** Ids of the entries of the history that it was shown, oldest first, and of those whose files it was shown. */
  shown: z.array(z.string()),
  withFiles: z.array(z.string()),
  /** The number of entries that did not fit, as far as they were counted. */
  dropped: z.number(),
  hasOlder: z.boolean(),
  /** The number of messages of the channel that it was shown, which are kept nowhere; absent: none. */
  fromChannel: z.number().exactOptional(),
  calls: z.array(call),
  /** Notices to people about missing parts. */
  notices: z.array(z.string()),
  tokens: z.object({ prompt: z.number(), completion: z.number(), estimated: z.number() }),
});

export type Sight = z.infer<typeof sight>;

/** The entries of the history that a request was made of. */
export type Given = Pick<Sight, "shown" | "withFiles" | "dropped" | "hasOlder" | "fromChannel">;

export const NOTHING_GIVEN: Given = { shown: [], withFiles: [], dropped: 0, hasOlder: false };

export function toGiven(
  kept: readonly HistoryEntry[],
  withFiles: readonly HistoryEntry[],
  rest: Pick<Given, "dropped" | "hasOlder" | "fromChannel">,
): Given {
  return { shown: kept.map(({ id }) => id), withFiles: withFiles.map(({ id }) => id), ...rest };
}

/** Tells a persona from another one without keeping it: it goes when the person who wrote it is forgotten. */
export function toPersonaMark(persona: string): string {
  return createHash("sha256").update(persona).digest("base64url").slice(0, 16);
}

/** The times of calls, by the ids of their steps. */
export interface CallTimes {
  note(step: Step): void;
  find(id: string): { at: number; tookMs?: number; state: Step["state"] } | undefined;
}

export function createCallTimes(now: () => number): CallTimes {
  const times = new Map<string, { at: number; tookMs?: number; state: Step["state"] }>();
  return {
    note({ id, state }) {
      const { at } = times.get(id) ?? { at: now() };
      times.set(id, state === "running" ? { at, state } : { at, state, tookMs: now() - at });
    },
    find: (id) => times.get(id),
  };
}

/** A turn's calls: one message of `messages` is a round. The ledger knows the ends of calls that were cut. */
export function toCalls(
  messages: readonly ChatMessage[],
  attempt: number,
  times: CallTimes,
  ledger: readonly LedgerRound[],
): Sight["calls"] {
  const stateOf = (round: number, index: number) => {
    const state = attempt > 1 ? ledger[round]?.calls[index]?.state : undefined;
    return state === "done" || state === "unknown" ? { state } : {};
  };
  const rounds = messages.flatMap((message) => (message.role === "assistant" ? [message.tool_calls ?? []] : []));
  return rounds
    .flatMap((calls, round) =>
      calls.map(({ function: { name, arguments: json } }, index) => {
        const seen = times.find(`${attempt}.${round + 1}.${index}`) ?? stateOf(round, index);
        return { name, arguments: truncate(json, MAX_ARGUMENT_CHARS), ...seen };
      }),
    )
    .slice(0, MAX_CALLS);
}

export function toNotices(notices: readonly string[]): string[] {
  return notices.slice(0, MAX_NOTICES).map((notice) => truncate(notice.replace(/^_|_$/g, ""), MAX_NOTICE_CHARS));
}
