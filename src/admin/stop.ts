import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Insight } from "../insight/insight.ts";
import type { Story } from "../insight/story.ts";
import type { Queue } from "../queue/queue.ts";

/** The name that readers see: not where an administrator works. */
const ADMINISTRATOR = "an administrator";

/** Longest that the end of the answer is waited for, and the pause between two looks. */
const END_MS = 5_000;
const LOOK_MS = 200;

export interface StopDeps {
  insight: { processes: Pick<Insight["processes"], "read">; turns: Pick<Insight["turns"], "turns"> };
  queue: Pick<Queue, "tell">;
}

/** Stops a turn, whichever process runs it. Resolves once it has ended; to undefined if it was not running. */
export type StopTurn = (turnId: string) => Promise<StopResult | undefined>;

export interface StopResult {
  story: Story;
  /** `ended`: it ended in another way than by a stop. `running`: it has not ended within a few seconds. */
  result: "stopped" | "ended" | "running";
}

/** Presses the asker's own button, so that every process hears of it. */
export function createStopTurn({ insight, queue }: StopDeps): StopTurn {
  const readRunning = async () => (await insight.processes.read()).flatMap((process) => process.running);

  async function readResult({ turnId, beganAt }: Story): Promise<StopResult["result"]> {
    const isIt = (one: Story) => one.turnId === turnId && one.beganAt === beganAt;
    const until = performance.now() + END_MS;
    for (;;) {
      const isRunning = (await readRunning()).some(isIt);
      // The stories of ended turns are many, and looked through only once this one can be among them.
      const ended = isRunning ? undefined : (await insight.turns.turns()).find(isIt);
      if (ended !== undefined) return ended.outcome === "stopped" ? "stopped" : "ended";
      if (performance.now() >= until) return isRunning ? "running" : "ended";
      await sleep(LOOK_MS);
    }
  }

  return async (turnId) => {
    const story = (await readRunning()).find((one) => one.turnId === turnId);
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
    return { story, result: await readResult(story) };
  };
}
