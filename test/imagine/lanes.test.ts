import { describe, expect, test } from "vitest";
import { toPictureLane } from "../../src/imagine/picture-lanes.ts";
import { action, command, message } from "../support/events.ts";

describe("an event", () => {
  test("waits in its conversation, unless it is about a picture", () => {
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
    expect(toPictureLane(action("stop", "job.0"))?.id).not.toBe(toPictureLane(action("retry", "job.0"))?.id);
    expect(toPictureLane(action("delete", "job.1"))?.kind).toBe("errand");
  });

  test("that asks for a picture waits for no other; pressing Retry or Delete twice does", () => {
    const idOf = (event: Parameters<typeof toPictureLane>[0]) => toPictureLane(event)?.id;
    expect(idOf(command("imagine"))).not.toBe(idOf(command("imagine")));
    expect(idOf(action("again", "job.1"))).not.toBe(idOf(action("again", "job.1")));
    expect(idOf(action("retry", "job.0"))).toBe(idOf(action("retry", "job.0")));
    expect(idOf(action("delete", "job.1"))).toBe(idOf(action("delete", "job.2")));
  });

  test("that asks for a picture, or for the rest of one, names the job it is about", () => {
    expect(toPictureLane(action("retry", "job.0"))?.workId).toBe("job");
    const asked = command("imagine");
    expect(toPictureLane(asked)?.id).toBe(`drawing:${toPictureLane(asked)?.workId}`);
  });
});
