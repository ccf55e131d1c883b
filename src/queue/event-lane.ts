import { asksAnew, type EventLane, type InboundEvent } from "../port/events.ts";
import { readTurnId, toTurnId } from "../port/ids.ts";
import type { Work } from "./admission.ts";

/** The lane in which an event waits, and its kind of work there. `EventLane` defines lanes. */
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

/** Converts an event to work that needs a slot. A thread counts as its channel. */
export function toWork(event: InboundEvent): Work {
  const { reply, author } = event;
  return {
    kind: laneOf(event).kind,
    person: toPerson(reply.platform, author.id),
    channel: JSON.stringify([reply.platform, reply.workspaceId, reply.channelId]),
    isSuspect: false,
  };
}

/** One person across all platforms. */
function toPerson(platform: string, authorId: string): string {
  return JSON.stringify([platform, authorId]);
}

/**
 * True if the event is erased together with its author's data. A command stores nothing about its author, unless it
 * creates images.
 */
export function isErasedWith(event: InboundEvent): boolean {
  return event.kind !== "command" || event.lane !== undefined;
}

/** A person who is being erased, with all their events except the one that requests the erasure. */
export interface ErasedPerson {
  platform: string;
  authorId: string;
  exceptKey: string;
}

/** True for this person's events. */
export function toErased({ platform, authorId, exceptKey }: ErasedPerson): (event: InboundEvent) => boolean {
  return ({ reply, author, key }) => reply.platform === platform && author.id === authorId && key !== exceptKey;
}
