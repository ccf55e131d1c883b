import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { PauseBoard, ToldPause } from "../gateway/breaker.ts";
import type { Scheduler } from "../pacing/scheduler.ts";
import { createSharedCalls, type SharedCalls } from "../queue/redis/calls.ts";
import type { Stores } from "../store/keyv.ts";
import { type Board, createBoard } from "../store/redis-board.ts";

const PAUSES = "palaver:gateway:pauses";

/** What processes on one Redis tell each other of limits that hold for all of them. */
export interface SharedLimits {
  calls: SharedCalls;
  /** What models of a gateway ask for; each gateway has a name. */
  pausesOf(gateway: string): PauseBoard;
  close(): void;
}

/** Undefined where no other process can share the store. */
export function openSharedLimits(
  { shared: connection, now }: Pick<Stores, "shared" | "now">,
  recall: Scheduler["recall"],
  log: Logger,
): SharedLimits | undefined {
  if (connection === undefined) return undefined;
  const calls = createSharedCalls({ connection, now, onHeard: recall, log });
  const boards: Board<ToldPause>[] = [];
  return {
    calls,
    pausesOf(gateway) {
      const place = gateway === "first" ? PAUSES : `${PAUSES}:${gateway}`;
      const board = createBoard<ToldPause>({ connection, place, by: randomUUID(), now, log });
      boards.push(board);
      return board;
    },
    close() {
      calls.close();
      for (const board of boards) board.close();
    },
  };
}
