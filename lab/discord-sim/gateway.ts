import type { Server } from "node:http";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import type { Changes } from "../support/changes.ts";
import type { Clock } from "./clock.ts";
import { createHandshake, type HandshakeDeps } from "./handshake.ts";
import type { GatewayEvent, Line, Session } from "./sessions.ts";
import { toSparse } from "./sparse.ts";
import type { Payload } from "./world.ts";

const SENDS_PER_MINUTE = 120;
/** Close codes after which a session cannot be resumed. */
const ENDING_CODES = new Set([1000, 1001, 4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014]);

export interface Gateway {
  /** Sessions that have a socket or can still be resumed. */
  readonly sessions: readonly Session[];
  /** Includes sessions that have ended. */
  readonly everySession: readonly Session[];
  /** Returns how many sessions received a shard's events at the same time, with an entry for each change. */
  heardBy(shard: number): readonly number[];
  /** Ids of the messages that people wrote while no session listened, because Discord had ended the last session. */
  readonly untoldIds: ReadonlySet<string>;
  deliver(event: GatewayEvent): void;
  /**
   * Sends an opcode to every socket: 7 requests a reconnect; 9 ends the session, which can be resumed if `data` is
   * true.
   */
  tell(op: number, data: unknown): void;
  /** Closes every socket with a close code, or resets every socket without a code. */
  hangUp(code?: number): void;
  /** If off, the simulator does not respond to heartbeats. */
  answerHeartbeats(isOn: boolean): void;
  /** Silences all existing sockets: they look alive but send nothing. New sockets work. */
  mute(): void;
  close(): void;
}

export interface GatewayDeps extends Omit<HandshakeDeps, "sessions" | "onBegin"> {
  clock: Clock;
  changes: Changes;
  heartbeatIntervalMs: number;
  /** If true, events omit all fields that Discord can omit. */
  isSparse: boolean;
}

/** Discord's gateway, on the same port as REST. */
export function createGateway(server: Server, deps: GatewayDeps): Gateway {
  const { clock, changes, violations, heartbeatIntervalMs, isSparse } = deps;
  const sockets = new WebSocketServer({ server });
  const sessions = new Map<string, Session>();
  const everySession: Session[] = [];
  const shake = createHandshake({ ...deps, sessions, onBegin: (session) => void everySession.push(session) });
  const muted = new WeakSet<WebSocket>();
  const heard = new Map<number, number[]>();
  const untoldIds = new Set<string>();
  let wasEndedHere = false;
  let answersHeartbeats = true;

  function count(shard: number): void {
    const counts = heard.get(shard) ?? [];
    heard.set(shard, counts);
    const now = attached().filter((session) => session.shard[0] === shard).length;
    if (now !== (counts.at(-1) ?? 0)) counts.push(now);
  }

  function end(session: Session, code: number, by: "bot" | "discord"): void {
    session.detach(clock.now());
    const isOver = ENDING_CODES.has(code);
    if (isOver) sessions.delete(session.id);
    if (attached().length === 0) wasEndedHere = isOver && by === "discord";
    count(session.shard[0]);
    changes.changed();
  }

  sockets.on("connection", (socket) => {
    let session: Session | undefined;
    const sends: number[] = [];
    const line = toLine(socket, () => muted.has(socket), isSparse);
    line.send({ op: 10, d: { heartbeat_interval: heartbeatIntervalMs, _trace: [] } });

    socket.on("message", (raw) => {
      sends.push(clock.now());
      if (sends.filter((at) => at > clock.now() - 60_000).length > SENDS_PER_MINUTE) {
        violations.record("gateway-abuse", `More than ${SENDS_PER_MINUTE} gateway sends in a minute.`);
        return line.close(4008, "Rate limited.");
      }
      const frame = parseFrame(raw);
      if (frame === undefined) return line.close(4002, "Error while decoding payload.");
      if (frame.op === 1) {
        if (answersHeartbeats) line.send({ op: 11, d: null });
      } else if (frame.op === 2 || frame.op === 6) {
        if (session !== undefined && session.line === line) return line.close(4005, "Already authenticated.");
        session = frame.op === 2 ? shake.identify(line, frame.d) : shake.resume(line, frame.d);
        if (session !== undefined) count(session.shard[0]);
      } else if (session === undefined) line.close(4003, "Not authenticated.");
      else if (frame.op !== 3 && frame.op !== 4 && frame.op !== 8) line.close(4001, "Unknown opcode.");
      changes.changed();
    });
    socket.on("close", (code) => {
      // A socket cannot end a session that another socket has resumed.
      if (session?.line === line) end(session, code, "bot");
    });
    socket.on("error", () => socket.terminate());
  });

  const attached = () => [...sessions.values()].filter(({ isAttached }) => isAttached);

  return {
    get sessions() {
      return [...sessions.values()];
    },
    everySession,
    heardBy: (shard) => heard.get(shard) ?? [],
    untoldIds,
    deliver(event) {
      const isUntold = event.type === "MESSAGE_CREATE" && wasEndedHere && attached().length === 0;
      if (isUntold) untoldIds.add(String(event.payload(true)["id"]));
      for (const session of sessions.values()) session.deliver(event);
      changes.changed();
    },
    tell(op, data) {
      for (const session of attached()) {
        session.line?.send({ op, d: data });
        if (op === 9) end(session, data === true ? 4000 : 4009, "discord");
      }
    },
    hangUp(code) {
      for (const session of attached()) end(session, code ?? 1006, "discord");
      for (const socket of sockets.clients) {
        if (code === undefined) socket.terminate();
        else socket.close(code);
      }
    },
    answerHeartbeats(isOn) {
      answersHeartbeats = isOn;
    },
    mute() {
      for (const socket of sockets.clients) muted.add(socket);
    },
    close() {
      for (const socket of sockets.clients) socket.terminate();
      sockets.close();
    },
  };
}

function toLine(socket: WebSocket, isMute: () => boolean, isSparse: boolean): Line {
  return {
    send(frame) {
      const shown = isSparse ? toSparseFrame(frame) : frame;
      if (!isMute() && socket.readyState === socket.OPEN) socket.send(JSON.stringify(shown));
    },
    close: (code, reason) => socket.close(code, reason),
  };
}

function toSparseFrame(frame: object): object {
  const { t: type, d: data } = frame as { t?: string; d?: Payload };
  return type === undefined || data === undefined ? frame : { ...frame, d: toSparse(type, data) };
}

function parseFrame(raw: RawData): { op: number; d: unknown } | undefined {
  try {
    const { op, d } = JSON.parse(Buffer.from(raw as Buffer).toString()) as Payload;
    return typeof op === "number" ? { op, d } : undefined;
  } catch {
    return undefined;
  }
}
