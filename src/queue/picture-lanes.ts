import type { InboundEvent } from "../port/events.ts";
import { readPictureId, toTurnId } from "../port/ids.ts";
import type { Work } from "./admission.ts";

const DRAWING = "drawing:";

/**
 * The lane in which an event waits its turn. A request for pictures waits for no conversation and holds up none: each
 * job has a lane of its own, in which its Retry waits too. Deleting waits only for deleting, and a Stop for nothing.
 */
export function toLaneId(event: InboundEvent): string {
  if (event.kind === "command" && event.name === "imagine") return DRAWING + toTurnId(event.key);
  const id = event.kind === "action" ? readPictureId(event.turnId) : undefined;
  if (id === undefined || event.kind !== "action") return event.conversationId;
  if (event.action === "delete") return `deleting:${id.jobId}`;
  if (event.action === "stop") return `stopping:${id.jobId}`;
  return DRAWING + (event.action === "retry" ? id.jobId : toTurnId(event.key));
}

export function isDrawing(event: InboundEvent): boolean {
  return toLaneId(event).startsWith(DRAWING);
}

/** True when the work on an event draws, or changes a drawing. */
export function isPictureWork(event: InboundEvent): boolean {
  return toLaneId(event) !== event.conversationId;
}

/** Describes the work on an event for admission. A thread counts as the channel that it is in. */
export function toWork(event: InboundEvent): Work {
  const { reply, author } = event;
  const isQuestion = event.kind === "message" || (event.kind === "action" && event.action === "retry");
  return {
    kind: isDrawing(event) ? "drawing" : isQuestion ? "question" : "errand",
    person: JSON.stringify([reply.platform, author.id]),
    channel: JSON.stringify([reply.platform, reply.workspaceId, reply.channelId]),
    isSuspect: false,
  };
}

/** The id of the turn, or of the picture job, that an event begins or goes on with. */
export function toWorkId(event: InboundEvent): string {
  const isRetry = event.kind === "action" && event.action === "retry";
  return isRetry ? (readPictureId(event.turnId)?.jobId ?? event.turnId) : toTurnId(event.key);
}
