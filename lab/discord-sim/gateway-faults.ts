import type { Gateway } from "./gateway.ts";
import type { Session } from "./sessions.ts";

/** Faults of the sockets. */
export interface GatewayFaults {
  /** All sessions that have a socket or that can still be resumed. */
  readonly sessions: readonly Session[];
  /** Also counts the sessions that have ended. */
  readonly everySession: readonly Session[];
  /** How many sessions received a shard's events at the same time, with one entry for each change. */
  heardBy(shard: number): readonly number[];
  /**
   * Ids of the messages that users wrote while no session listened, because Discord itself had ended the last session.
   */
  readonly untoldIds: ReadonlySet<string>;
  /** Resets every socket; the sessions can be resumed. */
  drop(): void;
  /** Opcode 7: Discord requests a new connection. */
  reconnect(): void;
  /** Opcode 9: Discord ends the sessions. */
  invalidate(isResumable?: boolean): void;
  closeWith(code: number): void;
  /** From now on, the simulator does not respond to heartbeats. */
  stopAcks(): void;
  resumeAcks(): void;
  /** From now on, the existing sockets send nothing. They are dead but look alive. New sockets work. */
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
