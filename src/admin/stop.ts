import { randomUUID } from "node:crypto";
import type { Insight } from "../insight/insight.ts";
import type { Story } from "../insight/story.ts";
import type { Queue } from "../queue/queue.ts";

/** The name that readers see: not where an administrator works. */
const ADMINISTRATOR = "an administrator";

export interface StopDeps {
  insight: Pick<Insight, "processes">;
  queue: Pick<Queue, "tell">;
}

/** Stops a turn, whichever process runs it. Resolves to its story; undefined where none runs. */
export type StopTurn = (turnId: string) => Promise<Story | undefined>;

/** Presses the asker's own button, so that every process hears of it. */
export function createStopTurn({ insight, queue }: StopDeps): StopTurn {
  return async (turnId) => {
    const running = (await insight.processes.read()).flatMap((process) => process.running);
    const story = running.find((one) => one.turnId === turnId);
    if (story === undefined) return undefined;
    const { conversationId, reply, author } = story;
    await queue.tell({
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
