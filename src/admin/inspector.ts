import { textOf } from "../gateway/chunks.ts";
import type { History } from "../history/history.ts";
import type { HistoryEntry } from "../history/record.ts";
import type { Settings } from "../settings/settings.ts";
import type { TurnRecord, TurnRecords } from "../turn/record.ts";
import { type Sight as StoredSight, toPersonaMark } from "../turn/sight.ts";
import type { OpenedMessage, Sight } from "./page/wire.ts";

/** Messages before an answer that are opened with it. */
const MAX_MESSAGES = 60;

export interface InspectorDeps {
  records: Pick<TurnRecords, "load" | "readSight">;
  history: Pick<History, "read">;
  settings: Pick<Settings, "read">;
}

/** "What did you see?" for an administrator: what the model was given for an answer, and, opened, what was said. */
export interface Inspector {
  /** Holds no word of what was said. Undefined: it is not kept any more. */
  readSight(turnId: string): Promise<Sight | undefined>;
  find(turnId: string): Promise<TurnRecord | undefined>;
  /** The messages up to an answer, oldest first. */
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
    async readSight(turnId) {
      const [record, seen] = await Promise.all([records.load(turnId), records.readSight(turnId)]);
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
    async open({ id, conversationId }) {
      const [{ entries }, seen] = await Promise.all([
        history.read(conversationId, { upToId: id, maxEntries: MAX_MESSAGES }),
        records.readSight(id),
      ]);
      const shown = new Set(seen?.shown);
      return entries.map((entry) => toOpened(entry, shown.has(entry.id)));
    },
  };
}

/** Leaves the arguments out, which may be people's words. */
function toWireCall({ name, at, tookMs, state }: StoredSight["calls"][number]): Sight["calls"][number] {
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
