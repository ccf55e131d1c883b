import { createHash } from "node:crypto";
import { type ChatMessage, textOf } from "../gateway/chunks.ts";
import type { HistoryEntry } from "../history/record.ts";
import type { ActionEvent } from "../port/events.ts";
import { readEditionId } from "../port/ids.ts";
import type { SinkLimits, Step } from "../port/sink.ts";
import { describeWithheld } from "../search/describe.ts";
import { describeOptions } from "../settings/answer-options.ts";
import { quoteName } from "../text/quote-name.ts";
import { escapeLabel, type Source, toLabel } from "../text/sources.ts";
import { truncate } from "../text/truncate.ts";
import type { LedgerRound } from "../tools/ledger.ts";
import { describeOther, describeReason } from "./endings.ts";
import type { Trace, TurnRecord } from "./record.ts";
import type { TurnServices } from "./records.ts";
import { maySee, NOT_HERE } from "./rights.ts";

/** The largest number of tool calls in a trace. Each stored answer has a trace. */
const MAX_CALLS = 20;

const MAX_ARGUMENT_CHARS = 300;

const MAX_NOTICES = 5;

const MAX_NOTICE_CHARS = 500;

export type ContextSummary = Pick<Trace, "shown" | "withFiles" | "dropped" | "hasOlder" | "fromChannel">;

export const EMPTY_SUMMARY: ContextSummary = { shown: [], withFiles: [], dropped: 0, hasOlder: false };

/**
 * Returns a hash that tells personas apart. The persona itself is not stored here, because it must be erased with the
 * person who wrote it.
 */
export function toPersonaMark(persona: string): string {
  return createHash("sha256").update(persona).digest("base64url").slice(0, 16);
}

/** When each tool call started and ended, by the id of its step. */
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

/**
 * Collects an attempt's tool calls for the trace. Each message of the model in `messages` is a round. The ledger says
 * how calls of earlier attempts ended. Calls from before the turn's last end have no state: that end has counted them.
 */
export function toCalls(
  messages: readonly ChatMessage[],
  { attempts, ends = [] }: Pick<TurnRecord, "attempts" | "ends">,
  times: CallTimes,
  ledger: readonly LedgerRound[],
): Trace["calls"] {
  const stateOf = (round: number, index: number) => {
    const call = ledger[round]?.calls[index];
    if (call?.ends !== ends.length) return {};
    return call.state === "done" || call.state === "unknown" ? { state: call.state } : {};
  };
  const rounds = messages.flatMap((message) => (message.role === "assistant" ? [message.tool_calls ?? []] : []));
  return rounds
    .flatMap((calls, round) =>
      calls.map(({ function: { name, arguments: json } }, index) => {
        const found = ledger[round]?.calls[index]?.found;
        const seen = times.find(`${attempts}.${round + 1}.${index}`) ?? stateOf(round, index);
        return { name, arguments: truncate(json, MAX_ARGUMENT_CHARS), ...seen, ...(found && { found }) };
      }),
    )
    .slice(0, MAX_CALLS);
}

export function toNotices(notices: readonly string[]): string[] {
  return notices.slice(0, MAX_NOTICES).map((notice) => truncate(notice.replace(/^_|_$/g, ""), MAX_NOTICE_CHARS));
}

const TOO_OLD = "This answer is too old: I no longer know what I was given for it.";

/** How many more entries to read, because the history can have other entries between those that the model saw. */
const SPARE_ENTRIES = 20;
const FOUND_MS = 10_000;

/** Describes, in one message of Markdown, what the model saw for an answer. Rejects if the store is unavailable. */
export type Explain = (event: ActionEvent, limits: SinkLimits) => Promise<string>;

export function createExplain({ records, history, settings, adapterOf }: TurnServices): Explain {
  async function describePersona({ persona }: Trace, { reply }: TurnRecord): Promise<string> {
    if (persona === undefined) return "as configured";
    const { persona: current } = await settings.read(reply);
    const isSame = current !== undefined && toPersonaMark(current) === persona;
    return isSame ? `of this channel, ${quoteName(current)}` : "of this channel, changed since";
  }

  /** Lists what a search found. Only the asking person reads this, so only that person's current permissions count. */
  async function describeFound({ found }: Trace["calls"][number], { author, reply }: ActionEvent): Promise<string[]> {
    if (found === undefined) return [];
    const signal = AbortSignal.timeout(FOUND_MS);
    const { mayShow } = adapterOf(reply.platform);
    const to = { author, reply: { ...reply, visibleTo: author.id } };
    const may = async (placeId: string) => (await mayShow?.(placeId, to, signal).catch(() => false)) === true;
    const shown = await Promise.all(found.hits.map(({ placeId }) => may(placeId)));
    const links = found.hits.flatMap(({ link }, index) => (shown[index] === true ? `  - Found: ${link}` : []));
    const lost = found.hits.length - links.length;
    return [
      ...links,
      ...(lost === 0 ? [] : [`  - Found: ${lost} more that you can't open now`]),
      ...(found.withheld === 0 ? [] : [`  - ${describeWithheld(found.withheld)}`]),
    ];
  }

  return async (event, limits) => {
    const { turnId } = readEditionId(event.turnId);
    const record = await records.load(turnId);
    if (record === undefined) return TOO_OLD;
    if (!maySee(event, record)) return NOT_HERE;
    const { trace } = record;
    if (trace === undefined) return TOO_OLD;
    const maxEntries = trace.shown.length + SPARE_ENTRIES;
    const { entries: newest } = await history.read(record.conversationId, { upToId: turnId, maxEntries });
    const first = await history.readFirst(record.conversationId);
    const entries = first === undefined ? newest : [first, ...newest.filter(({ id }) => id !== first.id)];
    const head = [
      "**What I was given for this answer**",
      `- Model: ${[describeModel(trace), describeOptions(trace.options)].filter(Boolean).join(", ")}`,
      `- Persona: ${await describePersona(trace, record)}`,
      `- Tokens: ${describeTokens(trace)}`,
    ];
    const sources = newest.find(({ id }) => id === turnId)?.sources ?? [];
    const calls = trace.calls.map(async (call) => [describeCall(call), ...(await describeFound(call, event))]);
    const tail = [
      ...describeFiles(trace, entries),
      ...(await Promise.all(calls)).flat(),
      ...sources.map(describeSource),
      ...describeMissing(trace),
    ];
    return fit(head, describeMessages(trace, entries), tail, limits);
  };
}

function describeModel({ model, fallback }: Trace): string {
  if (fallback === undefined) return quoteName(model);
  return `${describeOther(fallback)}, because ${describeReason(fallback.because, model)}`;
}

function describeTokens({ tokens: { prompt, completion, estimated } }: Trace): string {
  return `${prompt} read, ${completion} written${estimated > 0 ? ", estimated" : ""}`;
}

/** Lists the entries that the model saw. If an entry is missing in the history, it was erased. */
function describeMessages({ shown }: Trace, entries: readonly HistoryEntry[]): string[] {
  const known = new Map(entries.map((entry) => [entry.id, entry]));
  const found = shown.flatMap((id) => known.get(id) ?? []);
  const lines = found.map((entry) => `  - ${describeEntry(entry)}`);
  const erased = shown.length - found.length;
  return erased === 0 ? lines : [`  - ${erased} erased since`, ...lines];
}

function describeEntry({ author, messages, isEarlier, edition }: HistoryEntry): string {
  const words = quoteName(toWords(messages) || "(no words)");
  if (author === undefined) return `${edition === undefined ? "I" : "I, newest answer"}: ${words}`;
  return `${quoteName(author.name)}${isEarlier === true ? ", to others" : ""}: ${words}`;
}

function toWords(messages: readonly ChatMessage[]): string {
  return messages.map((message) => (message.role === "tool" ? "" : textOf(message))).join(" ");
}

function describeFiles({ shown, withFiles }: Trace, entries: readonly HistoryEntry[]): string[] {
  const among = entries.filter(({ id }) => shown.includes(id));
  return among.flatMap(({ id, attachments = [] }) =>
    attachments.map(({ name }) => `- File: ${quoteName(name)}${withFiles.includes(id) ? "" : ", name only"}`),
  );
}

function describeCall({ name, arguments: json, at, tookMs, state }: Trace["calls"][number]): string {
  const how = state === undefined ? "not run this time" : state === "running" ? "interrupted" : state;
  const time = at === undefined ? "" : ` at ${new Date(at).toISOString().slice(11, 19)} UTC`;
  const took = tookMs === undefined ? "" : ` after ${(tookMs / 1_000).toFixed(1)} s`;
  return `- Tool: ${quoteName(name)} with ${quoteName(json || "{}")}${time}, ${how}${took}`;
}

function describeSource(source: Source, index: number): string {
  const how = source.marks === undefined ? "read by a tool" : "cited by the AI service";
  return `- Source ${index + 1}, ${how}: [${escapeLabel(toLabel(source))}](${source.url})`;
}

function describeMissing({ dropped, hasOlder, notices, fromChannel = 0 }: Trace): string[] {
  const talk = `- Also: the last ${fromChannel} ${fromChannel === 1 ? "message" : "messages"} of the channel, which I don't store`;
  const count = dropped === 0 ? "" : `${dropped} ${dropped === 1 ? "message" : "messages"} that did not fit`;
  const older = hasOlder ? "older messages" : "";
  const left = [count, older].filter(Boolean).join(", and ");
  return [
    ...(fromChannel === 0 ? [] : [talk]),
    ...(left === "" ? [] : [`- Left out: ${left}`]),
    ...notices.map((notice) => `- Note: ${notice}`),
  ];
}

/** Leaves out the oldest messages, then the last lines, until the text fits into one message. */
function fit(
  head: readonly string[],
  messages: readonly string[],
  tail: readonly string[],
  { maxLength, lengthOf }: SinkLimits,
): string {
  for (let from = 0; from <= messages.length; from++) {
    const more = from === 0 ? "" : `, the newest ${messages.length - from} shown here`;
    const lines = [...head, `- Messages: ${messages.length}${more}`, ...messages.slice(from), ...tail];
    const text = lines.join("\n");
    if (lengthOf(text) <= maxLength) return text;
  }
  let kept = [...head, ...tail];
  while (kept.length > head.length && lengthOf(kept.join("\n")) > maxLength) kept = kept.slice(0, -1);
  return kept.join("\n");
}
