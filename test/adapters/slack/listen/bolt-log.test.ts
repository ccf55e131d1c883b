import { describe, expect, test } from "vitest";
import { toBoltLogger } from "../../../../adapters/slack/listen/bolt-log.ts";
import { recordingLog } from "../../../support/log.ts";

describe("what Bolt logs", () => {
  test("comes one level lower, and its debug lines at none", () => {
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

  test("is never asked for at the level at which bodies are logged", () => {
    const bolt = toBoltLogger(recordingLog().log);
    expect(bolt.getLevel()).toBe("info");
  });
});
