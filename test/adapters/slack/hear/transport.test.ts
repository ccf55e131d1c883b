import { describe, expect, test } from "vitest";
import { toBoltLogger } from "../../../../adapters/slack/hear/transport.ts";
import { recordingLog } from "../../../../lab/support/log.ts";

describe("the log of Bolt", () => {
  test("Bolt's log lines are one level lower, and its debug lines are dropped", () => {
    const { log, lines } = recordingLog();
    const bolt = toBoltLogger(log);
    bolt.debug("a whole message");
    bolt.info("connected");
    bolt.warn("slow");
    bolt.error("failed:", new Error("away"));
    expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
      [20, "Bolt: connected"],
      [20, "Bolt: slow"],
      [40, "Bolt reported a problem."],
      [20, "Bolt: failed: away"],
    ]);
  });

  test("Bolt never uses the log level at which it logs bodies", () => {
    const bolt = toBoltLogger(recordingLog().log);
    expect(bolt.getLevel()).toBe("info");
  });
});
