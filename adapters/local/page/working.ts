import type { MessageRow } from "./wire.ts";

/** True for a message about unfinished work, such as images being created. False for a growing text. */
export function isWorking({ buttons, isStreaming }: Pick<MessageRow, "buttons" | "isStreaming">): boolean {
  return !isStreaming && buttons.some(({ action }) => action === "stop");
}

/** Matches the id on an image's buttons: its job and its number. */
const PICTURE = /^([\w-]+)\.([1-9])$/;

/**
 * Puts the status of running or finished work after the messages that the work created, and images in the order of
 * their numbers. Other messages are in chronological order.
 */
export function orderMessages(messages: readonly MessageRow[]): MessageRow[] {
  const ordered = messages.toSorted(compareMessages);
  const pictures = ordered.flatMap((message, index) => {
    const again = message.buttons.find(({ action }) => action === "again");
    const [, turnId = "", part = ""] = PICTURE.exec(again?.turnId ?? "") ?? [];
    return turnId === "" ? [] : [{ message, index, turnId, part: Number(part) }];
  });
  for (const ofJob of Map.groupBy(pictures, ({ turnId }) => turnId).values()) {
    const places = ofJob.map(({ index }) => index);
    for (const [at, { message }] of ofJob.toSorted((a, b) => a.part - b.part).entries()) {
      ordered[places[at] ?? 0] = message;
    }
  }
  return ordered;
}

function compareMessages(a: MessageRow, b: MessageRow): number {
  const [placeOfA, placeOfB] = [placeOf(a), placeOf(b)];
  if (placeOfA !== placeOfB) return placeOfA - placeOfB;
  return Number(placeOfA !== a.id) - Number(placeOfB !== b.id) || a.id - b.id;
}

function placeOf(message: MessageRow): number {
  return isWorking(message) ? Number.MAX_SAFE_INTEGER : (message.movedBehind ?? message.id);
}
