import { textOf } from "../gateway/chunks.ts";
import type { History } from "../history/history.ts";
import type { HistoryEntry } from "../history/record.ts";
import type { Settings } from "../settings/settings.ts";
import type { Trace as StoredTrace, TurnRecord } from "../turn/record.ts";
import type { TurnRecords } from "../turn/records.ts";
import { toPersonaMark } from "../turn/trace.ts";
import type { OpenedMessage, Trace } from "./page/wire.ts";

const MAX_MESSAGES = 60;

export interface InspectorDeps {
  records: TurnRecords;
  history: History;
  settings: Pick<Settings, "read">;
}

/** Shows an administrator the context that the model got for an answer and, on request, the messages. */
export interface Inspector {
  /** Resolves to a record without any text from the conversation; undefined if the record has expired. */
  readTrace(turnId: string): Promise<Trace | undefined>;
  find(turnId: string): Promise<TurnRecord | undefined>;
  /** Resolves to the answer and the messages before it, oldest first. */
  open(record: TurnRecord): Promise<OpenedMessage[]>;
}

export function createInspector({ records, history, settings }: InspectorDeps): Inspector {
  async function describePersona(persona: string | undefined, record: TurnRecord): Promise<string> {
    if (persona === undefined) return "as configured";
    const { persona: current } = await settings.read(record.reply);
    return current !== undefined && toPersonaMark(current) === persona
      ? "of this channel"
      : "of this channel, changed since";
  }

  return {
    async readTrace(turnId) {
      const record = await records.load(turnId);
      const seen = record?.trace;
      if (record === undefined || seen === undefined) return undefined;
      const { at, model, options, shown, withFiles, dropped, hasOlder, fromChannel = 0, calls, notices, tokens } = seen;
      return {
        at,
        model,
        options: { ...options },
        persona: await describePersona(seen.persona, record),
        shown: shown.length,
        withFiles: withFiles.length,
        dropped,
        hasOlder,
        fromChannel,
        calls: calls.map(toWireCall),
        notices,
        tokens,
      };
    },
    find: records.load,
    async open({ id, conversationId, trace }) {
      const { entries } = await history.read(conversationId, { upToId: id, maxEntries: MAX_MESSAGES });
      const shown = new Set(trace?.shown);
      return entries.map((entry) => toOpened(entry, shown.has(entry.id)));
    },
  };
}

/** Omits the call's arguments, because they can quote people. */
function toWireCall({ name, at, tookMs, state }: StoredTrace["calls"][number]): Trace["calls"][number] {
  return { name, state: state ?? "not run", ...(at !== undefined && { at }), ...(tookMs !== undefined && { tookMs }) };
}

function toOpened({ at, author, messages, attachments = [] }: HistoryEntry, wasShown: boolean): OpenedMessage {
  const texts = messages.flatMap((message) => (message.role === "tool" ? [] : textOf(message)));
  return {
    at,
    author: author?.name ?? null,
    text: texts.filter(Boolean).join("\n\n"),
    files: attachments.map(({ name }) => name),
    wasShown,
  };
}
