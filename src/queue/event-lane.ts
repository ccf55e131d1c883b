import { asksAnew, type EventLane, type InboundEvent } from "../port/events.ts";
import { readTurnId, toTurnId } from "../port/ids.ts";
import type { Work } from "./admission.ts";

/** The lane in which an event waits, and the kind of work it is there; `EventLane` says what a lane is. */
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

/** An event as work to be given a place. A thread counts as the channel that it is in. */
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

/** True when erasing the author erases the event. A command stores nothing of its author, unless it draws. */
export function isErasedWith(event: InboundEvent): boolean {
  return event.kind !== "command" || event.lane !== undefined;
}

/** A person who is erased, with all events of theirs but the one that asks for it. */
export interface ErasedPerson {
  platform: string;
  authorId: string;
  exceptKey: string;
}

/** True for the events that are a person's. */
export function toErased({ platform, authorId, exceptKey }: ErasedPerson): (event: InboundEvent) => boolean {
  return ({ reply, author, key }) => reply.platform === platform && author.id === authorId && key !== exceptKey;
}
