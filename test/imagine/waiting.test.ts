import { describe, expect, test } from "vitest";
import type { PictureJob } from "../../src/imagine/picture-job.ts";
import { createWaitingMessages, toStatusNonce } from "../../src/imagine/waiting.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { StoreError } from "../../src/store/outage.ts";
import { ben, command } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";
import { silent } from "../support/log.ts";
import { pictureJob } from "../support/picture-job.ts";

function start(load: (id: string) => Promise<PictureJob | undefined> = async () => undefined) {
  const platform = fakePlatform();
  const messages = createWaitingMessages({ jobs: { load }, sinkOf: () => platform.sink, log: silent });
  return { ...platform, messages };
}

describe("a job that waits", () => {
  test("says so in the message that it goes on with", async () => {
    const { messages, channel, texts } = start();
    const event = command("imagine", "a fox");
    const id = toTurnId(event.key);
    messages.announce(event);
    expect(await messages.find(id)).toBe(channel[0]?.id);
    expect(texts()).toEqual(["Waiting: other pictures are being drawn first."]);
    expect(channel[0]?.nonce).toBe(toStatusNonce(id));
    expect(channel[0]?.draft.buttons).toEqual([{ action: "stop", turnId: `${id}.0`, label: "Stop" }]);
    expect(messages.eventOf(id)).toBe(event);
    messages.leave(id);
    expect(messages.eventOf(id)).toBeUndefined();
    expect(await messages.find(id)).toBeUndefined();
  });

  test.each([
    ["over", { isOver: true }],
    ["under another message", { statusId: "test:other" }],
  ])("leaves no message behind where another process has come so far that it is %s", async (_, given) => {
    const { messages, texts } = start(async (id) => pictureJob({ id, ...given }));
    const event = command("imagine", "a fox");
    messages.announce(event);
    expect(await messages.find(toTurnId(event.key))).toBeUndefined();
    expect(texts()).toEqual([]);
    expect(messages.eventOf(toTurnId(event.key))).toBeUndefined();
  });

  test("keeps its message where the store cannot tell", async () => {
    const { messages, channel } = start(async () => {
      throw new StoreError("away");
    });
    const event = command("imagine", "a fox");
    messages.announce(event);
    expect(await messages.find(toTurnId(event.key))).toBe(channel[0]?.id);
  });

  test("takes its message away when it does not begin, and when its person is forgotten", async () => {
    const { messages, texts } = start();
    const [mine, other, theirs] = [command("imagine"), command("imagine"), command("imagine", "", { author: ben })];
    for (const event of [mine, other, theirs]) messages.announce(event);
    await messages.dismiss(toTurnId(mine.key));
    await messages.forget("test", "ada");
    expect(texts()).toHaveLength(1);
    expect(await messages.find(toTurnId(theirs.key))).toBeDefined();
  });

  test("goes on without a message where none could be posted", async () => {
    const { messages, setTrouble } = start();
    setTrouble(() => ({ kind: "forbidden" }));
    const event = command("imagine");
    messages.announce(event);
    expect(await messages.find(toTurnId(event.key))).toBeUndefined();
    await messages.dismiss(toTurnId(event.key));
  });
});
