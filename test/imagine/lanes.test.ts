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

  test("a Stop goes to the lane of its image turn, and needs no slot", () => {
    const retry = toPictureLane(action("retry", "job.0"));
    expect(toPictureLane(action("stop", "job.0"))).toEqual({ ...retry, kind: "errand" });
  });

  test("image requests do not wait for each other, but repeated presses of Retry or Delete do", () => {
    const idOf = (event: Parameters<typeof toPictureLane>[0]) => toPictureLane(event)?.id;
    expect(idOf(command("imagine"))).not.toBe(idOf(command("imagine")));
    expect(idOf(action("again", "job.1"))).not.toBe(idOf(action("again", "job.1")));
    expect(idOf(action("retry", "job.0"))).toBe(idOf(action("retry", "job.0")));
    expect(idOf(action("delete", "job.1"))).toBe(idOf(action("delete", "job.2")));
  });

  test("an image request and its Retry name the same turn", () => {
    expect(toPictureLane(action("retry", "job.0"))?.workId).toBe("job");
    const asked = command("imagine");
    expect(toPictureLane(asked)?.id).toBe(`drawing:${toPictureLane(asked)?.workId}`);
  });
});
