import type { EventLane, InboundEvent } from "../port/events.ts";
import { readPictureId, toTurnId } from "../port/ids.ts";

/**
 * Returns the queue's lane for an event about images; undefined for other events. A turn, its Retry and its Stop share
 * one lane. All deletions share a different lane. A Stop needs no slot, and stays in the lane until the turn that it
 * stops has ended.
 */
export function toPictureLane(event: InboundEvent): EventLane | undefined {
  const ownId = toTurnId(event.key);
  if (event.kind === "command" && event.name === "imagine") return toDrawing(ownId);
  const id = event.kind === "action" ? readPictureId(event.turnId) : undefined;
  if (id === undefined || event.kind !== "action") return undefined;
  if (event.action === "delete") return { id: `deleting:${id.turnId}`, kind: "errand", workId: ownId };
  if (event.action === "stop") return { ...toDrawing(id.turnId), kind: "errand" };
  return toDrawing(event.action === "retry" ? id.turnId : ownId);
}

function toDrawing(turnId: string): EventLane {
  return { id: `drawing:${turnId}`, kind: "drawing", workId: turnId };
}
