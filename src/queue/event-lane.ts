import { asksAnew, type EventLane, type InboundEvent } from "../port/events.ts";
import { readTurnId, toTurnId } from "../port/ids.ts";
import type { Work } from "./admission.ts";

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

/**
 * Describes the work for an event, to choose fairly between people and channels. A thread counts as its parent channel.
 */
export function toWork(event: InboundEvent): Work {
  const { reply, author } = event;
  return {
    kind: laneOf(event).kind,
    person: JSON.stringify([reply.platform, author.id]),
    channel: JSON.stringify([reply.platform, reply.workspaceId, reply.channelId]),
    isSuspect: false,
  };
}

/** True if erasing a person also erases this event. False for most commands, which store nothing about their author. */
export function isErasedWith(event: InboundEvent): boolean {
  return event.kind !== "command" || event.lane !== undefined;
}

/** Selects all of a person's events except the one with `exceptKey`, which requests the erasure. */
export interface ErasedPerson {
  platform: string;
  authorId: string;
  exceptKey: string;
}

export function toErased({ platform, authorId, exceptKey }: ErasedPerson): (event: InboundEvent) => boolean {
  return ({ reply, author, key }) => reply.platform === platform && author.id === authorId && key !== exceptKey;
}
