import type { Gateway } from "./gateway.ts";
import type { Session } from "./sessions.ts";

/** What goes wrong on the sockets. */
export interface GatewayFaults {
  /** Every session, with a socket or waiting to be resumed. */
  readonly sessions: readonly Session[];
  /** Those that have ended as well. */
  readonly everySession: readonly Session[];
  /** How many sessions have heard a shard at a time, from the first one on, each time that changed. */
  heardBy(shard: number): readonly number[];
  /** Ids of messages that were said while nobody listened, after Discord itself had ended the last session that did. */
  readonly untoldIds: ReadonlySet<string>;
  /** Cuts every socket; the sessions can be resumed. */
  drop(): void;
  /** Opcode 7: Discord asks for a new connection. */
  reconnect(): void;
  /** Opcode 9: Discord ends the sessions. */
  invalidate(isResumable?: boolean): void;
  closeWith(code: number): void;
  /** From here on heartbeats are not answered, or are again. */
  stopAcks(): void;
  resumeAcks(): void;
  /** Nothing more is sent on the sockets there are: lines that look alive and are dead. Later ones work. */
  mute(): void;
}

export function createGatewayFaults(gateway: Gateway): GatewayFaults {
  return {
    get sessions() {
      return gateway.sessions;
    },
    everySession: gateway.everySession,
    heardBy: gateway.heardBy,
    untoldIds: gateway.untoldIds,
    drop: () => gateway.hangUp(),
    reconnect: () => gateway.tell(7, null),
    invalidate: (isResumable = false) => gateway.tell(9, isResumable),
    closeWith: (code) => gateway.hangUp(code),
    stopAcks: () => gateway.answerHeartbeats(false),
    resumeAcks: () => gateway.answerHeartbeats(true),
    mute: () => gateway.mute(),
  };
}
