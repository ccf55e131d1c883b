import type { EventLane, InboundEvent } from "../port/events.ts";
import { readPictureId, toTurnId } from "../port/ids.ts";

/**
 * The lane of an event about pictures; undefined for others, and for those accepted before lanes. A job and its Retry
 * share a lane, deletions have one, and a Stop waits for nothing.
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
