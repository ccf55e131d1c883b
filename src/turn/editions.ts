import { type ChatMessage, textOf } from "../gateway/chunks.ts";
import type { History } from "../history/history.ts";
import type { FormerAnswer, HistoryEntry } from "../history/record.ts";
import { toEditionId } from "../port/ids.ts";
import type { Button } from "../port/sink.ts";
import type { TurnRecord } from "./record.ts";

/** Most answers kept to one question, the newest included: each may be as long as a conversation. */
const MAX_EDITIONS = 5;

/** The answer of a turn as the history has it; undefined where there is none. Rejects when the store does not answer. */
export async function readAnswer(
  history: Pick<History, "read">,
  { conversationId, id }: Pick<TurnRecord, "conversationId" | "id">,
): Promise<HistoryEntry | undefined> {
  const { entries } = await history.read(conversationId, { upToId: id, maxEntries: 1 });
  return entries.find((entry) => entry.id === id);
}

export function editionOf({ edition = 1 }: HistoryEntry): number {
  return edition;
}

/** All answers of a turn that are kept, oldest first. */
export function editionsOf(entry: HistoryEntry): FormerAnswer[] {
  const { at, messages, former = [] } = entry;
  return [...former, { edition: editionOf(entry), at, messages }];
}

/** The answers that are kept beside a new one. One that is written again in its own place leaves those as they are. */
export function formerOf(before: HistoryEntry | undefined, edition: number): FormerAnswer[] {
  if (before === undefined) return [];
  const former = editionOf(before) === edition ? (before.former ?? []) : editionsOf(before);
  return former.slice(1 - MAX_EDITIONS);
}

/** The buttons that lead from one of several answers to those beside it. */
export function toEditionButtons(turnId: string, editions: readonly number[], shown: number): Button[] {
  const at = editions.indexOf(shown);
  const [before, after] = [editions[at - 1], editions[at + 1]];
  const toButton = (edition: number, label: string): Button => {
    return { action: "show", turnId: toEditionId(turnId, edition), label };
  };
  const place = `${at + 1}/${editions.length}`;
  // The place stands once: on the way back, or where there is none on the way on.
  if (before === undefined) return after === undefined ? [] : [toButton(after, `${place} ›`)];
  return [toButton(before, `‹ ${place}`), ...(after === undefined ? [] : [toButton(after, "›")])];
}

/** The model's text as it was shown: before a tool and after it are two paragraphs. */
export function toAnswerText(messages: readonly ChatMessage[]): string {
  const texts = messages.map((message) => (message.role === "assistant" ? textOf(message) : ""));
  return texts.filter(Boolean).join("\n\n");
}
