import { describe, expect, test } from "vitest";
import type { InboundEvent } from "../../src/adapter.ts";
import type { Lane } from "../../src/queue/lanes.ts";
import { createAdmission, isDrawing, isPictureWork, toLaneId } from "../../src/queue/picture-lanes.ts";
import { action, ada, ben, command, message } from "../support/events.ts";

const lane = (event: InboundEvent): Lane => ({
  id: toLaneId(event),
  conversationId: event.conversationId,
  waiting: [event],
  state: "ready",
  taken: [],
  done: [],
  failures: 0,
  faults: 0,
});
const picture = (id: string, channelId = "general") => {
  return { ...command("imagine", "a fox", { author: { id, name: id } }), reply: { platform: "test", channelId } };
};

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

describe("what may begin", () => {
  const running = (...events: InboundEvent[]) => createAdmission(events.map(lane), 2);

  test("are so many conversations, whatever is drawn", () => {
    const mayBegin = running(message("a"), picture("ada"), picture("ben"), action("delete", "job.1"));
    expect(mayBegin(lane(message("b")))).toBe(false);
    expect(running(message("a"), picture("ada"), picture("ben"))(lane(message("b")))).toBe(true);
    expect(running(message("a"), message("b"))(lane(picture(ada.id)))).toBe(true);
  });

  test("are two jobs of a person, four of a channel, and eight in all", () => {
    const two = running(picture(ada.id), picture(ada.id, "other"));
    expect([two(lane(picture(ada.id))), two(lane(picture(ben.id)))]).toEqual([false, true]);
    const four = running(...["a", "b", "c", "d"].map((id) => picture(id)));
    expect([four(lane(picture("e"))), four(lane(picture("e", "other")))]).toEqual([false, true]);
    const eight = running(...["a", "b", "c", "d", "e", "f", "g", "h"].map((id) => picture(id, id)));
    expect(eight(lane(picture("i", "i")))).toBe(false);
  });
});
