import { randomUUID } from "node:crypto";
import type { Insight } from "../insight/insight.ts";
import type { Story } from "../insight/story.ts";
import type { Accept } from "../port/events.ts";

/** For those who read the answer: they are not told where an administrator works. */
const ADMINISTRATOR = "an administrator";

export interface StopDeps {
  insight: Pick<Insight, "processes" | "turns">;
  accept: Accept;
  /** True for a platform whose events each process keeps to itself. */
  isOwn(platform: string): boolean;
}

/** Stops a turn of any process. Undefined: none runs. Rejects with a `NotHereError` where it cannot be reached. */
export type StopTurn = (turnId: string) => Promise<Story | undefined>;

export class NotHereError extends Error {
  override name = "NotHereError";
}

/** Presses the button that whoever asked has before them: it goes the way that a press goes. */
export function createStopTurn({ insight, accept, isOwn }: StopDeps): StopTurn {
  return async (turnId) => {
    const running = (await insight.processes.read()).flatMap((process) => process.running);
    const story = running.find((one) => one.turnId === turnId);
    if (story === undefined) return undefined;
    const { conversationId, reply, author, process } = story;
    const isHere = insight.turns.running().some((one) => one.turnId === turnId);
    if (!isHere && isOwn(reply.platform)) {
      throw new NotHereError(`The page of ${process} has this answer to itself: stop it there, or at its dashboard.`);
    }
    await accept({
      kind: "action",
      action: "stop",
      key: `admin:stop:${randomUUID()}`,
      conversationId,
      author: { id: author.id, name: ADMINISTRATOR },
      reply,
      at: Date.now(),
      turnId,
    });
    return story;
  };
}
