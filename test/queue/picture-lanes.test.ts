import { describe, expect, test } from "vitest";
import { isDrawing, isPictureWork, toLaneId } from "../../src/queue/picture-lanes.ts";
import { action, command, message } from "../support/events.ts";

describe("an event", () => {
  test("waits in its conversation, unless it is about a picture", () => {
    expect(toLaneId(message("hello"))).toBe("test:a");
    expect(toLaneId(command("help"))).toBe("test:a");
    expect(toLaneId(action("retry", "turn"))).toBe("test:a");
    for (const event of [
      command("imagine"),
      action("again", "job.1"),
      action("retry", "job.0"),
      action("delete", "job.1"),
      action("stop", "job.0"),
    ]) {
      expect(isPictureWork(event)).toBe(true);
    }
    expect(toLaneId(action("stop", "job.0"))).not.toBe(toLaneId(action("retry", "job.0")));
    expect(isDrawing(action("delete", "job.1"))).toBe(false);
  });

  test("that asks for a picture waits for no other; pressing Retry or Delete twice does", () => {
    expect(toLaneId(command("imagine"))).not.toBe(toLaneId(command("imagine")));
    expect(toLaneId(action("again", "job.1"))).not.toBe(toLaneId(action("again", "job.1")));
    expect(toLaneId(action("retry", "job.0"))).toBe(toLaneId(action("retry", "job.0")));
    expect(toLaneId(action("delete", "job.1"))).toBe(toLaneId(action("delete", "job.2")));
  });
});
