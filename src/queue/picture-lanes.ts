import type { InboundEvent } from "../adapter.ts";
import { readPictureId } from "../imagine/picture-id.ts";
import { toTurnId } from "../turn/record.ts";
import type { Lane } from "./lanes.ts";

/** Pictures take long: what is drawn is bounded by itself, so that it takes no place from those who talk. */
const MAX_PER_PERSON = 2;
const MAX_PER_CHANNEL = 4;
const MAX_PICTURE_JOBS = 8;

const DRAWING = "drawing:";

/**
 * Where an event waits its turn. What asks for pictures waits for no conversation and holds up none: each job has a
 * lane of its own, in which its Retry waits too. Deleting waits only for deleting, and a Stop for nothing.
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

/** Whether the work on an event draws, or changes what was drawn. */
export function isPictureWork(event: InboundEvent): boolean {
  return toLaneId(event) !== event.conversationId;
}

/**
 * Which lanes may begin beside those that run: `maxTurns` of conversations, and of those that draw only so many of
 * one person, in one channel, and in all. What is over a bound waits, in order.
 */
export function createAdmission(running: readonly Lane[], maxTurns: number): (lane: Lane) => boolean {
  const drawing = running.filter(isDrawingLane);
  const turns = running.length - drawing.length;
  return (lane) => {
    if (!isDrawingLane(lane)) return turns < maxTurns;
    const isSame = (key: (event: InboundEvent) => string) => (other: Lane) => keyOf(other, key) === keyOf(lane, key);
    return (
      drawing.length < MAX_PICTURE_JOBS &&
      drawing.filter(isSame(toPerson)).length < MAX_PER_PERSON &&
      drawing.filter(isSame(toChannel)).length < MAX_PER_CHANNEL
    );
  };
}

function isDrawingLane({ id }: Lane): boolean {
  return id.startsWith(DRAWING);
}

function keyOf({ taken, waiting }: Lane, key: (event: InboundEvent) => string): string {
  const event = taken[0] ?? waiting[0];
  return event === undefined ? "" : key(event);
}

function toPerson({ reply: { platform }, author: { id } }: InboundEvent): string {
  return JSON.stringify([platform, id]);
}

function toChannel({ reply: { platform, channelId, threadId } }: InboundEvent): string {
  return JSON.stringify([platform, channelId, threadId]);
}
