import { randomUUID } from "node:crypto";
import type { Payload } from "./world.ts";

export const INTENTS = {
  guilds: 1 << 0,
  guildMembers: 1 << 1,
  guildPresences: 1 << 8,
  guildMessages: 1 << 9,
  guildMessageReactions: 1 << 10,
  guildMessageTyping: 1 << 11,
  directMessages: 1 << 12,
  directMessageReactions: 1 << 13,
  directMessageTyping: 1 << 14,
  messageContent: 1 << 15,
} as const;

/** An event for every session that is allowed to receive it. */
export interface GatewayEvent {
  type: string;
  /** Selects the shard. Without a guild, shard 0 gets the event. */
  guildId?: string | undefined;
  /** The intent that a session needs; 0 for none. */
  intent: number;
  payload(canReadContent: boolean): Payload;
}

export interface Line {
  send(frame: object): void;
  close(code: number, reason: string): void;
}

/** An identified client. The session outlives its socket, so that the client can resume it. */
export interface Session {
  readonly id: string;
  readonly shard: readonly [id: number, count: number];
  readonly intents: number;
  readonly lastSequence: number;
  readonly isAttached: boolean;
  attach(line: Line): void;
  detach(nowMs: number): void;
  /** When the session lost its socket; undefined while it has one. */
  readonly detachedAtMs: number | undefined;
  /** Ids of the messages that the session received, live or after a resume. */
  readonly toldIds: ReadonlySet<string>;
  /** Numbers an event, stores it for a resume, and sends it if the session has a socket. */
  dispatch(type: string, data: Payload): void;
  /** Sends an event if it is for the session's shard and intents. */
  deliver(event: GatewayEvent): void;
  /** Sends all events after `sequence` again. */
  replay(sequence: number): void;
  /** The socket, for everything except events; undefined while the session has none. */
  readonly line: Line | undefined;
}

export function createSession(shard: readonly [number, number], intents: number): Session {
  const sent: { op: 0; t: string; s: number; d: Payload }[] = [];
  let line: Line | undefined;
  let detachedAtMs: number | undefined;
  const toldIds = new Set<string>();

  function send(frame: (typeof sent)[number]): void {
    if (line === undefined) return;
    line.send(frame);
    if (frame.t === "MESSAGE_CREATE") toldIds.add(String(frame.d["id"]));
  }

  function dispatch(type: string, data: Payload): void {
    const frame = { op: 0 as const, t: type, s: sent.length + 1, d: data };
    sent.push(frame);
    send(frame);
  }

  return {
    id: randomUUID().replaceAll("-", ""),
    shard,
    intents,
    get lastSequence() {
      return sent.length;
    },
    get isAttached() {
      return line !== undefined;
    },
    get detachedAtMs() {
      return detachedAtMs;
    },
    get line() {
      return line;
    },
    toldIds,
    attach(next) {
      line = next;
      detachedAtMs = undefined;
    },
    detach(nowMs) {
      line = undefined;
      detachedAtMs = nowMs;
    },
    dispatch,
    deliver({ type, guildId, intent, payload }) {
      if (shardOf(guildId, shard[1]) !== shard[0]) return;
      if (intent !== 0 && (intents & intent) === 0) return;
      dispatch(type, payload((intents & INTENTS.messageContent) !== 0));
    },
    replay(sequence) {
      for (const frame of sent.slice(sequence)) if (frame.t !== "RESUMED") send(frame);
    },
  };
}

export function shardOf(guildId: string | undefined, count: number): number {
  return guildId === undefined ? 0 : Number((BigInt(guildId) >> 22n) % BigInt(count));
}
