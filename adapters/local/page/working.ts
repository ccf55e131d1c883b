import type { MessageRow } from "./wire.ts";

/** True for the status of work that goes on, such as pictures being drawn; false for a text that grows. */
export function isWorking({ buttons, isStreaming }: Pick<MessageRow, "buttons" | "isStreaming">): boolean {
  return !isStreaming && buttons.some(({ action }) => action === "stop");
}

/** Orders messages of one place: oldest first, but work that goes on, and how it ended, behind what it brought. */
export function compareMessages(a: MessageRow, b: MessageRow): number {
  const [placeOfA, placeOfB] = [placeOf(a), placeOf(b)];
  if (placeOfA !== placeOfB) return placeOfA - placeOfB;
  return Number(placeOfA !== a.id) - Number(placeOfB !== b.id) || a.id - b.id;
}

function placeOf(message: MessageRow): number {
  return isWorking(message) ? Number.MAX_SAFE_INTEGER : (message.movedBehind ?? message.id);
}

/** The question whose answer is being written, the last of those that are answered together. Pictures hold up nothing. */
export function findAnswered(messages: readonly MessageRow[]): number | undefined {
  const isAnswer = ({ buttons }: MessageRow) =>
    buttons.some(({ action, turnId }) => action === "stop" && !turnId.includes("."));
  return messages.findLast(isAnswer)?.replyTo ?? undefined;
}
