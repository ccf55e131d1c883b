import type { Gateway } from "./gateway.ts";
import type { Session } from "./sessions.ts";

export interface GatewayFaults {
  /** Sessions that have a socket or can still be resumed. */
  readonly sessions: readonly Session[];
  /** Includes sessions that have ended. */
  readonly everySession: readonly Session[];
  /** Returns how many sessions received a shard's events at the same time, with an entry for each change. */
  heardBy(shard: number): readonly number[];
  /** Ids of the messages that people wrote while no session listened, because Discord had ended the last session. */
  readonly untoldIds: ReadonlySet<string>;
  /** Resets every socket. Clients can resume their sessions. */
  drop(): void;
  /** Sends opcode 7: Discord requests a new connection. */
  reconnect(): void;
  /** Sends opcode 9: Discord ends the sessions. */
  invalidate(isResumable?: boolean): void;
  closeWith(code: number): void;
  /** Stops responding to heartbeats. */
  stopAcks(): void;
  resumeAcks(): void;
  /** Silences all existing sockets: they look alive but send nothing. New sockets work. */
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
