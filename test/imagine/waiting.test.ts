import { describe, expect, test } from "vitest";
import { isTakenUp } from "../../src/concurrency/fence.ts";
import type { PictureJob } from "../../src/imagine/picture-job.ts";
import { createWaitingMessages, toStatusNonce } from "../../src/imagine/waiting.ts";
import { toTurnId } from "../../src/port/ids.ts";
import { ben, command } from "../support/events.ts";
import { fakePlatform } from "../support/fake-platform.ts";
import { silent } from "../support/log.ts";
import { pictureJob } from "../support/picture-job.ts";

/** Processes on one store, which post to one platform. */
function start() {
  const platform = fakePlatform();
  const known = new Map<string, PictureJob>();
  const marks = new Set<string>();
  const jobs = {
    load: async (id: string) => known.get(id),
    markWaiting: async (id: string) => marks.size === marks.add(id).size,
    isMarkedWaiting: async (id: string) => marks.has(id),
    dropWaiting: async (id: string) => marks.delete(id),
  };
  const open = () => createWaitingMessages({ jobs, sinkOf: () => platform.sink, log: silent });
  return { ...platform, jobs, known, open, messages: open() };
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
    const { messages, open, known, sink, texts } = start();
    const event = command("imagine", "a fox");
    const id = toTurnId(event.key);
    const post = sink.post.bind(sink);
    sink.post = async (...args) => {
      expect(await open().takeOver(id)).toBe(true);
      known.set(id, pictureJob({ id, ...given }));
      return post(...args);
    };
    messages.announce(event);
    expect(await messages.find(id)).toBeUndefined();
    expect(texts()).toEqual([]);
    expect(messages.eventOf(id)).toBeUndefined();
  });

  test("keeps its message where another process goes on with it", async () => {
    const { messages, open, known, sink, channel } = start();
    const event = command("imagine", "a fox");
    const id = toTurnId(event.key);
    const post = sink.post.bind(sink);
    sink.post = async (...args) => {
      const posted = await post(...args);
      await open().takeOver(id);
      known.set(id, pictureJob({ id, statusId: posted.id }));
      return posted;
    };
    messages.announce(event);
    expect(await messages.find(id)).toBe(channel[0]?.id);
  });

  test("has no second message where a process had begun it and died", async () => {
    const { messages, known, texts } = start();
    const event = command("imagine", "a fox");
    const id = toTurnId(event.key);
    known.set(id, pictureJob({ id, statusId: "test:first" }));
    messages.announce(event);
    expect(await messages.find(id)).toBeUndefined();
    expect(texts()).toEqual([]);
  });

  test("is told of once although the process that told of it has died", async () => {
    const { messages, open, channel, sink } = start();
    const event = command("imagine", "a fox");
    const id = toTurnId(event.key);
    messages.announce(event);
    const first = await messages.find(id);
    const post = sink.post.bind(sink);
    // What is taken up looks for what an earlier process has posted.
    sink.post = async (...args) => (isTakenUp() && channel[0] ? { id: channel[0].id } : post(...args));
    const next = open();
    next.announce(event);
    expect(await next.find(id)).toBe(first);
    expect(channel).toHaveLength(1);
    await open().dismiss(event);
    expect(channel).toHaveLength(0);
  });

  test("takes its message away when it does not begin, and when its person is forgotten", async () => {
    const { messages, texts } = start();
    const [mine, other, theirs] = [command("imagine"), command("imagine"), command("imagine", "", { author: ben })];
    for (const event of [mine, other, theirs]) messages.announce(event);
    await messages.dismiss(mine);
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
    await messages.dismiss(event);
  });
});
