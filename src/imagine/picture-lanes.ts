import type { EventLane, InboundEvent } from "../port/events.ts";
import { readPictureId, toTurnId } from "../port/ids.ts";

/**
 * Where an event waits its turn that is about pictures; undefined for every other one, and for those that were taken
 * in before lanes were said. What asks for pictures waits for no conversation and holds up none: each job has a lane of
 * its own, in which its Retry waits too. Deleting waits only for deleting, and a Stop for nothing.
 */
export function toPictureLane(event: InboundEvent): EventLane | undefined {
  const ownId = toTurnId(event.key);
  if (event.kind === "command" && event.name === "imagine") return toDrawing(ownId);
  const id = event.kind === "action" ? readPictureId(event.turnId) : undefined;
  if (id === undefined || event.kind !== "action") return undefined;
  if (event.action === "delete") return { id: `deleting:${id.jobId}`, kind: "errand", workId: ownId };
  if (event.action === "stop") return { id: `stopping:${id.jobId}`, kind: "errand", workId: ownId };
  return toDrawing(event.action === "retry" ? id.jobId : ownId);
}

function toDrawing(jobId: string): EventLane {
  return { id: `drawing:${jobId}`, kind: "drawing", workId: jobId };
}
