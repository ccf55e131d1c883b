import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { z } from "zod";
import type { PauseBoard, ToldPause } from "../gateway/breaker.ts";
import { GATEWAY_ERROR_KINDS } from "../gateway/errors.ts";
import type { Scheduler } from "../pacing/scheduler.ts";
import type { SharedWaits } from "../port/pace.ts";
import { createSharedCalls, type SharedCalls } from "../queue/redis/calls.ts";
import type { Stores } from "../store/keyv.ts";
import { type Board, createBoard } from "../store/redis-board.ts";

const PAUSES = "palaver:gateway:pauses";

/** Keeps the further fields of a newer version. */
export const toldPause: z.ZodType<ToldPause> = z.looseObject({
  kind: z.enum(GATEWAY_ERROR_KINDS),
  message: z.string(),
  status: z.number().exactOptional(),
  id: z.string().exactOptional(),
  isAsked: z.boolean().exactOptional(),
});

/** Rate limits hold for all processes on one Redis: they tell each other of calls and pauses. */
export interface SharedLimits {
  calls: SharedCalls;
  /** Pauses that a gateway's models asked for. Each gateway has a name. */
  pausesOf(gateway: string): PauseBoard;
  /** Waits that a platform asked for. */
  waitsOf(platform: string): SharedWaits;
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
  const boards: Pick<Board<unknown>, "close">[] = [];

  const open = <T>(place: string, schema: z.ZodType<T>): Board<T> => {
    const board = createBoard({ connection, schema, place, by: randomUUID(), now, log });
    boards.push(board);
    return board;
  };

  return {
    calls,
    pausesOf: (gateway) => open(gateway === "first" ? PAUSES : `${PAUSES}:${gateway}`, toldPause),
    waitsOf(platform) {
      const board = open(`palaver:${platform}:waits`, z.literal(true));
      return {
        tell: (what, forMs) => board.tell(what, true, forMs),
        listen: (onTold) => void board.listen((what, _, forMs) => onTold(what, forMs)),
      };
    },
    close() {
      calls.close();
      for (const board of boards) board.close();
    },
  };
}
