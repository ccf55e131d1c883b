import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Insight } from "../insight/insight.ts";
import type { Story } from "../insight/story.ts";
import type { Queue } from "../queue/queue.ts";

/** People in the channel see this name instead of the administrator's own. */
const ADMINISTRATOR = "an administrator";

/** Maximum time to wait for the turn to end, checked every `LOOK_MS`. */
const END_MS = 5_000;
const LOOK_MS = 200;

export interface StopDeps {
  insight: { processes: Pick<Insight["processes"], "read">; turns: Pick<Insight["turns"], "turns"> };
  queue: Pick<Queue, "tell">;
}

/**
 * Stops a turn in whichever process runs it, and waits for its end. Resolves to undefined if the turn was not running.
 */
export type StopTurn = (turnId: string) => Promise<StopResult | undefined>;

export interface StopResult {
  story: Story;
  /** `ended`: the turn ended before the stop. `running`: the turn was still running after `END_MS`. */
  result: "stopped" | "ended" | "running";
}

/** Sends the same event as the asker's Stop button, so that the stop reaches every process. */
export function createStopTurn({ insight, queue }: StopDeps): StopTurn {
  const readRunning = async () => (await insight.processes.read()).flatMap((process) => process.running);

  async function readResult({ turnId, beganAt }: Story): Promise<StopResult["result"]> {
    const isIt = (one: Story) => one.turnId === turnId && one.beganAt === beganAt;
    const until = performance.now() + END_MS;
    for (;;) {
      const isRunning = (await readRunning()).some(isIt);
      // Read all ended turns only if the turn is no longer running, because that is slow.
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
