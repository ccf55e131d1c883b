import type { MessageRow } from "./wire.ts";

/** True for the status of work that goes on, such as pictures being drawn; false for a text that grows. */
export function isWorking({ buttons, isStreaming }: Pick<MessageRow, "buttons" | "isStreaming">): boolean {
  return !isStreaming && buttons.some(({ action }) => action === "stop");
}

/** The id on the buttons of a picture: its job and its number in it. */
const PICTURE = /^([\w-]+)\.([1-9])$/;

/**
 * Messages of one place: oldest first, but the status of work, running or ended, comes after the messages that it
 * brought. Pictures of one request stand in the order of their numbers.
 */
export function orderMessages(messages: readonly MessageRow[]): MessageRow[] {
  const ordered = messages.toSorted(compareMessages);
  const pictures = ordered.flatMap((message, index) => {
    const again = message.buttons.find(({ action }) => action === "again");
    const [, jobId = "", part = ""] = PICTURE.exec(again?.turnId ?? "") ?? [];
    return jobId === "" ? [] : [{ message, index, jobId, part: Number(part) }];
  });
  for (const ofJob of Map.groupBy(pictures, ({ jobId }) => jobId).values()) {
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
