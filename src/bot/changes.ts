import type { History } from "../history/history.ts";
import type { DeletedEvent, EditedEvent } from "../port/events.ts";
import { askEdited, cancelDeleted, isLeftBehind } from "../turn/questions.ts";
import type { BotParts } from "./deps.ts";

/**
 * Handles an edit or a deletion. If an answer waits for approval, an edit of its question restarts it and a deletion
 * removes it.
 */
export async function onChanged(deps: BotParts, event: EditedEvent | DeletedEvent, signal: AbortSignal): Promise<void> {
  const mayAsk = event.kind === "deleted" || (await deps.gate.findRefusal(event)) === undefined;
  if (mayAsk && (await deps.answers.reconsider(event, signal))) return;
  if (event.kind === "edited") return onEdited(deps, event);
  // Another process may have deleted this message, because it was left over from a finished answer.
  if (await isLeftBehind(deps, event.messageId)) return;
  const isKept = await deps.history.remove(event.messageId);
  if (!isKept) await deps.history.markDeleted(event.messageId);
  await cancelDeleted(deps, event, signal);
}

/**
 * An edit that adds a mention of the bot turns the message into a question. If an answered question's text changes, the
 * bot answers again.
 */
async function onEdited(deps: BotParts, { addressed, ...event }: EditedEvent): Promise<void> {
  const { history, accept } = deps;
  const { messageId, text, attachments } = event;
  const again = await askEdited(deps, event);
  if (again !== undefined) await accept(again);
  await history.edit(messageId, text, attachments);
  if (addressed === undefined || (await wasAsked(history, messageId))) return;
  // A message that now mentions the bot becomes the newest question of its conversation.
  await history.remove(messageId);
  await accept({ ...event, kind: "message", key: `${event.key}:asked`, addressed });
}

async function wasAsked(history: History, messageId: string): Promise<boolean> {
  const place = await history.find(messageId);
  if (place === undefined) return false;
  const { entries } = await history.read(place.conversationId, { maxEntries: 1, upToId: messageId });
  return entries[0]?.isEarlier !== true;
}
