import type { ChatMessage } from "../gateway/chunks.ts";
import { textOf } from "../gateway/chunks.ts";
import type { History } from "../history/history.ts";
import type { HistoryEntry } from "../history/record.ts";
import type { ActionEvent } from "../port/events.ts";
import { readEditionId } from "../port/ids.ts";
import type { SinkLimits } from "../port/sink.ts";
import { describeOptions } from "../settings/answer-options.ts";
import type { Settings } from "../settings/settings.ts";
import { quoteName } from "../text/quote-name.ts";
import { describeOther, describeReason } from "./detour.ts";
import type { TurnRecord, TurnRecords } from "./record.ts";
import { maySee, NOT_HERE } from "./rights.ts";
import { type Sight, toPersonaMark } from "./sight.ts";

const TOO_OLD = "This answer is too old for that: what I was given for it is not kept any more.";
/** Entries that may have come between those that were shown: they are read along. */
const SPARE_ENTRIES = 20;

/** Says in one message of Markdown what the model was given. Rejects when the store does not answer. */
export type Explain = (event: ActionEvent, limits: SinkLimits) => Promise<string>;

export interface ExplainDeps {
  records: Pick<TurnRecords, "load" | "readSight">;
  history: Pick<History, "read" | "readFirst">;
  settings: Pick<Settings, "read">;
}

export function createExplain({ records, history, settings }: ExplainDeps): Explain {
  async function describePersona({ persona }: Sight, { reply }: TurnRecord): Promise<string> {
    if (persona === undefined) return "as configured";
    const { persona: current } = await settings.read(reply);
    const isSame = current !== undefined && toPersonaMark(current) === persona;
    return isSame ? `of this channel, ${quoteName(current)}` : "of this channel, which was changed since";
  }

  return async (event, limits) => {
    const { turnId } = readEditionId(event.turnId);
    const record = await records.load(turnId);
    if (record === undefined) return TOO_OLD;
    if (!maySee(event, record)) return NOT_HERE;
    const sight = await records.readSight(turnId);
    if (sight === undefined) return TOO_OLD;
    const maxEntries = sight.shown.length + SPARE_ENTRIES;
    const { entries: newest } = await history.read(record.conversationId, { upToId: turnId, maxEntries });
    const first = await history.readFirst(record.conversationId);
    const entries = first === undefined ? newest : [first, ...newest.filter(({ id }) => id !== first.id)];
    const head = [
      "**What I was given for this answer**",
      `- Model: ${[describeModel(sight), describeOptions(sight.options)].filter(Boolean).join(", ")}`,
      `- Persona: ${await describePersona(sight, record)}`,
      `- Tokens: ${describeTokens(sight)}`,
    ];
    const tail = [...describeFiles(sight, entries), ...sight.calls.map(describeCall), ...describeMissing(sight)];
    return fit(head, describeMessages(sight, entries), tail, limits);
  };
}

function describeModel({ model, detour }: Sight): string {
  if (detour === undefined) return quoteName(model);
  return `${describeOther(detour)}, because ${describeReason(detour.because, model)}`;
}

function describeTokens({ tokens: { prompt, completion, estimated } }: Sight): string {
  return `${prompt} read, ${completion} written${estimated > 0 ? ", estimated" : ""}`;
}

/** Describes the entries that the model was shown; missing ones were erased since. */
function describeMessages({ shown }: Sight, entries: readonly HistoryEntry[]): string[] {
  const known = new Map(entries.map((entry) => [entry.id, entry]));
  const found = shown.flatMap((id) => known.get(id) ?? []);
  const lines = found.map((entry) => `  - ${describeEntry(entry)}`);
  const erased = shown.length - found.length;
  return erased === 0 ? lines : [`  - ${erased} that were erased since`, ...lines];
}

function describeEntry({ author, messages, isEarlier, edition }: HistoryEntry): string {
  const said = quoteName(toWords(messages) || "(no words)");
  if (author === undefined) return `${edition === undefined ? "I" : "I, at last"}: ${said}`;
  return `${quoteName(author.name)}${isEarlier === true ? ", to others" : ""}: ${said}`;
}

function toWords(messages: readonly ChatMessage[]): string {
  return messages.map((message) => (message.role === "tool" ? "" : textOf(message))).join(" ");
}

function describeFiles({ shown, withFiles }: Sight, entries: readonly HistoryEntry[]): string[] {
  const among = entries.filter(({ id }) => shown.includes(id));
  return among.flatMap(({ id, attachments = [] }) =>
    attachments.map(({ name }) => `- File: ${quoteName(name)}${withFiles.includes(id) ? "" : ", its name alone"}`),
  );
}

function describeCall({ name, arguments: json, at, tookMs, state }: Sight["calls"][number]): string {
  const how = state === undefined ? "not run" : state === "running" ? "cut off" : state;
  const time = at === undefined ? "" : ` at ${new Date(at).toISOString().slice(11, 19)} UTC`;
  const took = tookMs === undefined ? "" : ` after ${(tookMs / 1_000).toFixed(1)} s`;
  return `- Tool: ${quoteName(name)} with ${quoteName(json || "{}")}${time}, ${how}${took}`;
}

function describeMissing({ dropped, hasOlder, notices, fromChannel = 0 }: Sight): string[] {
  const talk = `- Beside them: the last ${fromChannel} ${fromChannel === 1 ? "message" : "messages"} of the channel, which are kept nowhere`;
  const count = dropped === 0 ? "" : `${dropped} ${dropped === 1 ? "message" : "messages"} that did not fit`;
  const older = hasOlder ? "what is older than the window" : "";
  const left = [count, older].filter(Boolean).join(", and ");
  return [
    ...(fromChannel === 0 ? [] : [talk]),
    ...(left === "" ? [] : [`- Left out: ${left}`]),
    ...notices.map((notice) => `- Said about it: ${notice}`),
  ];
}

/** Leaves out the oldest messages first, then the last lines, so that one message of the platform takes all of it. */
function fit(
  head: readonly string[],
  messages: readonly string[],
  tail: readonly string[],
  { maxLength, lengthOf }: SinkLimits,
): string {
  for (let from = 0; from <= messages.length; from++) {
    const more = from === 0 ? "" : `, the newest ${messages.length - from} here`;
    const lines = [...head, `- Messages: ${messages.length}${more}`, ...messages.slice(from), ...tail];
    const text = lines.join("\n");
    if (lengthOf(text) <= maxLength) return text;
  }
  let kept = [...head, ...tail];
  while (kept.length > head.length && lengthOf(kept.join("\n")) > maxLength) kept = kept.slice(0, -1);
  return kept.join("\n");
}
