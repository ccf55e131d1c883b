import { describe, expect, test } from "vitest";
import { createWaitingRoom, toStatusNonce } from "../../src/imagine/waiting.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { ben, command } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";
import { silent } from "../support/log.ts";

function start() {
  const platform = fakePlatform();
  return { ...platform, room: createWaitingRoom(() => platform.sink, silent) };
}

describe("a job that waits", () => {
  test("says so in the message that it goes on with", async () => {
    const { room, channel, texts } = start();
    const event = command("imagine", "a fox");
    const id = toTurnId(event.key);
    room.announce(event);
    expect(await room.find(id)).toBe(channel[0]?.id);
    expect(texts()).toEqual(["Waiting: other pictures are being drawn first."]);
    expect(channel[0]?.nonce).toBe(toStatusNonce(id));
    expect(channel[0]?.draft.buttons).toEqual([{ action: "stop", turnId: `${id}.0`, label: "Stop" }]);
    expect(room.eventOf(id)).toBe(event);
    room.leave(id);
    expect(room.eventOf(id)).toBeUndefined();
    expect(await room.find(id)).toBeUndefined();
  });

  test("takes its message away when it does not begin, and when its person is forgotten", async () => {
    const { room, texts } = start();
    const [mine, other, theirs] = [command("imagine"), command("imagine"), command("imagine", "", { author: ben })];
    for (const event of [mine, other, theirs]) room.announce(event);
    await room.dismiss(toTurnId(mine.key));
    await room.forget("test", "ada");
    expect(texts()).toHaveLength(1);
    expect(await room.find(toTurnId(theirs.key))).toBeDefined();
  });

  test("goes on without a message where none could be posted", async () => {
    const { room, setTrouble } = start();
    setTrouble(() => ({ kind: "forbidden" }));
    const event = command("imagine");
    room.announce(event);
    expect(await room.find(toTurnId(event.key))).toBeUndefined();
    await room.dismiss(toTurnId(event.key));
  });
});
