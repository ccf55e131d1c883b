import { asksAnew, type EventLane, type InboundEvent } from "../port/events.ts";
import { readTurnId, toTurnId } from "../port/ids.ts";
import type { Work } from "./admission.ts";

/** Where an event waits its turn, and as what. */
export function laneOf(event: InboundEvent): EventLane {
  if (event.lane !== undefined) return event.lane;
  return {
    id: event.conversationId,
    kind: event.kind === "message" || asksAnew(event) ? "question" : "errand",
    workId: asksAnew(event) ? readTurnId(event.turnId) : toTurnId(event.key),
  };
}

export function isDrawing(event: InboundEvent): boolean {
  return laneOf(event).kind === "drawing";
}

/** What the work on an event is for whoever gives out the places. A thread counts as the channel that it is in. */
export function toWork(event: InboundEvent): Work {
  const { reply, author } = event;
  return {
    kind: laneOf(event).kind,
    person: toPerson(reply.platform, author.id),
    channel: JSON.stringify([reply.platform, reply.workspaceId, reply.channelId]),
    isSuspect: false,
  };
}

/** One person among all platforms'. */
export function toPerson(platform: string, authorId: string): string {
  return JSON.stringify([platform, authorId]);
}

/** Whether an event is a person's own to be erased. A command of theirs stores nothing of them, unless it draws. */
export function isErasedWith(event: InboundEvent): boolean {
  return event.kind !== "command" || event.lane !== undefined;
}
