import { describe, expect, test } from "vitest";
import { action, command, message } from "../../lab/support/events.ts";
import { toPictureLane } from "../../src/imagine/lanes.ts";

describe("the lane of an image event", () => {
  test("an event waits in its conversation unless it is about an image", () => {
    for (const event of [message("hello"), command("help"), action("retry", "turn")]) {
      expect(toPictureLane(event)).toBeUndefined();
    }
    for (const event of [
      command("imagine"),
      action("again", "job.1"),
      action("retry", "job.0"),
      action("delete", "job.1"),
      action("stop", "job.0"),
    ]) {
      expect(toPictureLane(event)).toBeDefined();
    }
    expect(toPictureLane(action("delete", "job.1"))?.kind).toBe("errand");
  });
});
