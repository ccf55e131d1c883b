import { expect, test } from "vitest";
import { createStopTurn } from "../../src/admin/stop.ts";
import type { ProcessReport } from "../../src/insight/processes.ts";
import type { Story } from "../../src/insight/story.ts";

const RUNNING = {
  turnId: "turn-1",
  conversationId: "test:general",
  reply: { platform: "test", channelId: "general" },
  author: { id: "ada", name: "Ada" },
  beganAt: 2,
} as Story;

function start(running: Story[], outcome: string) {
  let looks = 0;
  const ended: Story[] = [{ ...RUNNING, beganAt: 1, outcome: "complete" }];
  return createStopTurn({
    insight: {
      processes: { read: async () => [{ running } as unknown as ProcessReport] },
      turns: {
        async turns() {
          looks += 1;
          expect(looks).toBe(1);
          return ended;
        },
      },
    },
    queue: {
      async tell() {
        setTimeout(() => {
          running.pop();
          ended.push({ ...RUNNING, outcome });
        });
      },
    },
  });
}

test("a stop resolves after the answer has ended, and returns whether the stop ended the answer", async () => {
  expect(await start([RUNNING], "stopped")("turn-1")).toEqual({ story: RUNNING, result: "stopped" });
  expect(await start([RUNNING], "complete")("turn-1")).toEqual({ story: RUNNING, result: "ended" });
  expect(await start([], "stopped")("turn-1")).toBeUndefined();
});
